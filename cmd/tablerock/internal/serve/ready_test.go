package serve

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/metrics"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// TestReadiness checks /readyz before the databases are open, while they are, after the disk
// of one fails, and at the end.
func TestReadiness(t *testing.T) {
	disk := errorfs.Wrap(vfs.NewMem(), nil)
	var dbs databases
	for name, fsys := range map[string]vfs.FS{"good": vfs.NewMem(), "failing": disk} {
		db, err := engine.Open(name, engine.Options{FS: fsys, SegmentBytes: minSegmentBytes, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		dbs = append(dbs, database{account: account{name: name}, db: db})
	}
	a := newAdmin(metrics.New("test"), func(context.Context) error { return nil }, slog.New(slog.DiscardHandler))
	for _, step := range []struct {
		name   string
		do     func()
		status int
		text   string
		pages  int // the status of a page if there are none
	}{
		{"before it serves", func() {}, http.StatusServiceUnavailable, "not ready\n", http.StatusServiceUnavailable},
		{"while it serves", func() { a.serving.Store(&dbs) }, http.StatusOK, "ok\n", http.StatusNotFound},
		{"after a failed sync", func() {
			disk.SetRule(func(op vfs.Op) *errorfs.Fault {
				if op.Kind == "sync" {
					return &errorfs.Fault{Err: syscall.EIO}
				}
				return nil
			})
			for _, d := range dbs {
				if err := d.db.CreateTable(t.Context(), "Orders"); (err == nil) != (d.name == "good") {
					t.Errorf("CreateTable for %s: %v", d.name, err)
				}
			}
		}, http.StatusServiceUnavailable, "account failing: database is read-only: ", http.StatusNotFound},
		{"while it ends", func() { a.serving.Store(nil) }, http.StatusServiceUnavailable, "not ready\n", http.StatusServiceUnavailable},
	} {
		step.do()
		for path, want := range map[string]int{"/readyz": step.status, "/healthz": http.StatusOK, explorer.Root: step.pages} {
			w := httptest.NewRecorder()
			a.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
			if text := w.Body.String(); w.Code != want || path == "/readyz" && !strings.HasPrefix(text, step.text) {
				t.Errorf("%s, %s returns %d %q, want %d %q", step.name, path, w.Code, text, want, step.text)
			}
		}
	}
	for _, d := range dbs {
		if err := d.db.Close(); err != nil {
			t.Errorf("close %s: %v", d.name, err)
		}
	}
}
