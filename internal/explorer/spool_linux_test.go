package explorer_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/internal/explorer"
)

// openFiles returns the open files of this process in the directory of temporary files.
func openFiles(t *testing.T) (names []string) {
	t.Helper()
	list, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range list {
		if name, err := os.Readlink(fd); err == nil && strings.HasPrefix(name, os.TempDir()+"/") {
			names = append(names, name)
		}
	}
	return names
}

// wantNoFiles waits until no temporary file is open or listed: the end of a job can be seen
// before its file is closed.
func wantNoFiles(t *testing.T) {
	t.Helper()
	deadline := time.After(time.Minute)
	for tick := time.Tick(time.Millisecond); ; {
		listed, err := os.ReadDir(os.TempDir())
		open := openFiles(t)
		if err == nil && len(open)+len(listed) == 0 {
			return
		}
		select {
		case <-tick:
		case <-deadline:
			t.Fatalf("the files %q are open, and %v are left: %v", open, listed, err)
		}
	}
}

// chunk sends a chunk of an import and returns the status and the code of a failure.
func (b *browser) chunk(job string, at int, data string) (int, string) {
	b.t.Helper()
	path := fmt.Sprintf("/ui/api/import/data?id=%s&offset=%d", job, at)
	response, text := b.send(http.MethodPost, path, data, "Cookie", b.cookie, "Origin", b.url, "X-Csrf-Token", b.csrf)
	return response.StatusCode, text
}

// parquet returns a table of the site as a file.
func (b *browser) parquet(table string) string {
	b.t.Helper()
	var job struct{ Job, URL string }
	b.want(http.StatusOK, &job, "export", object{"account": "first", "table": table, "name": "x.parquet"})
	if j := b.wait(job.Job); j.State != "done" {
		b.t.Fatalf("the export is %+v", j)
	}
	_, text := b.send(http.MethodGet, job.URL, "", "Cookie", b.cookie)
	b.want(http.StatusOK, nil, "logout", object{})
	return text
}

// TestSpooledFilesEnd ends imports of Parquet in each way: none leaves its file.
func TestSpooledFilesEnd(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := newSite(t)
	s.fill("Tab", 2, 50)
	whole := s.owner().parquet("Tab")
	wantNoFiles(t)
	b := s.owner()
	begin := func() (id string) {
		var job struct{ Job string }
		b.want(http.StatusOK, &job, "import", object{"account": "first", "table": "New", "name": "x.parquet", "size": len(whole)})
		if status, text := b.chunk(job.Job, 0, whole[:100]); status != http.StatusOK {
			t.Fatalf("the first chunk: %d %s", status, text)
		}
		if len(openFiles(t)) != 1 {
			t.Fatalf("an import has the files %q", openFiles(t))
		}
		return job.Job
	}
	if j := b.upload("New", "x.parquet", whole, 777, nil); j.State != "done" || j.Rows != 100 {
		t.Errorf("a whole file: %+v %+v", j, j.Failure)
	}
	wantNoFiles(t)
	if j := b.upload("New", "x.parquet", whole[:len(whole)-1], 777, nil); j.State != "failed" || j.Failure.Code != "InvalidFile" {
		t.Errorf("a damaged file: %+v %+v", j, j.Failure)
	}
	wantNoFiles(t)
	id := begin()
	b.want(http.StatusOK, nil, "job/cancel", object{"id": id})
	if j := b.wait(id); j.State != "canceled" {
		t.Errorf("a canceled import: %+v", j)
	}
	wantNoFiles(t)
	if status, text := b.chunk(id, 100, "x"); status != http.StatusConflict {
		t.Errorf("a chunk after the end: %d %s", status, text)
	}
	begin()
	b.want(http.StatusOK, nil, "logout", object{})
	wantNoFiles(t)
}

// TestSpoolLimits refuses Parquet files that are too large at their start, and ends an import
// whose file finds the disk full.
func TestSpoolLimits(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		if errors.Is(err, fs.ErrPermission) { // EPERM, or EACCES of a security module
			t.Skipf("only root can mount a small volume: %v", err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	s := newSite(t)
	b := s.owner()
	for size, want := range map[int64]struct {
		status     int
		code, text string
	}{
		16<<30 + 1: {http.StatusRequestEntityTooLarge, "FilesTooLarge", "16 GiB"},
		700 << 10:  {http.StatusInsufficientStorage, "NoSpace", "too little space for temporary files"},
	} {
		var f explorer.Failure
		b.want(want.status, &f, "import", object{"account": "first", "table": "New", "name": "x.parquet", "size": size})
		if f.Code != want.code || !strings.Contains(f.Message, want.text) {
			t.Errorf("a file of %d bytes: %+v", size, f)
		}
	}
	wantNoFiles(t)
	var job struct{ Job string }
	b.want(http.StatusOK, &job, "import", object{"account": "first", "table": "New", "name": "x.parquet", "size": 400 << 10})
	data := string(bytes.Repeat([]byte("x"), 200<<10))
	if status, text := b.chunk(job.Job, 0, data); status != http.StatusOK {
		t.Fatalf("the first chunk: %d %s", status, text)
	}
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if status, text := b.chunk(job.Job, 200<<10, data); status != http.StatusInsufficientStorage || !strings.Contains(text, `"NoSpace"`) {
		t.Errorf("a chunk on a full disk: %d %s", status, text)
	}
	if j := b.wait(job.Job); j.State != "failed" || j.Failure.Code != "NoSpace" {
		t.Errorf("the import is %+v %+v", j, j.Failure)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	wantNoFiles(t)
}
