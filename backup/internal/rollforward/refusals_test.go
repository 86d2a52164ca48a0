package rollforward_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/backup/internal/rollforward"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// chunks is an archive in memory.
type chunks map[string][]byte

func (c chunks) Put(_ context.Context, name string, chunk io.Reader) error {
	b, err := io.ReadAll(chunk)
	c[name] = b
	return err
}

// history is a database with a backup, whose directory is "backup", and chunks after it.
type history struct {
	*testing.T
	disk  *vfs.Mem
	clock clock
	db    *engine.DB
	chunks
	base, last edm.Ticks
}

func newHistory(t *testing.T) *history {
	h := &history{T: t, disk: vfs.NewMem(), chunks: chunks{}, clock: clock{now: edm.TicksOf(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC))}}
	o := engine.Options{FS: h.disk, SegmentBytes: 64 << 10, CacheBytes: 1 << 20, Archive: h.chunks}
	o.Testing.Clock, o.Testing.Manual = &h.clock, true
	db, err := engine.Open("db", o)
	h.check("Open", err)
	h.db = db
	h.check("CreateTable", db.CreateTable(t.Context(), "Things"))
	h.put("before")
	h.base = h.last
	h.check("Checkpoint", db.Checkpoint(t.Context(), "backup"))
	for i := range 4 {
		h.put(fmt.Sprint("after", i))
		h.check("Flush", db.Flush(t.Context()))
	}
	h.check("Close", db.Close())
	return h
}

func (h *history) check(what string, err error) {
	h.Helper()
	if err != nil {
		h.Fatalf("%s: %v", what, err)
	}
}

func (h *history) put(row string) {
	h.clock.move(10_000_000)
	results, err := h.db.Apply(h.Context(), "Things", store.InsertOrReplace(edm.Entity{Key: edm.Key{Row: row}}))
	h.check("Apply", err)
	h.last = results[0].Timestamp
}

// apply applies the chunks to a copy of the backup and returns the copy.
func (h *history) apply(until edm.Ticks) (*vfs.Mem, error) {
	disk := h.disk.Clone()
	o := rollforward.Options{
		FS: disk, Dir: "backup", Names: slices.Collect(maps.Keys(h.chunks)), Base: h.base, Until: until,
		Open: func(_ context.Context, name string) (io.ReadCloser, error) {
			b, ok := h.chunks[name]
			if !ok {
				return nil, fs.ErrNotExist
			}
			return io.NopCloser(bytes.NewReader(b)), nil
		},
	}
	m, err := manifest.Read(disk, "backup")
	h.check("manifest", err)
	early := rollforward.Check(h.Context(), o, m.DBID, 3)
	_, err = rollforward.Apply(h.Context(), o)
	if errors.Is(err, rollforward.ErrOutOfRange) && fmt.Sprint(early) != fmt.Sprint(err) || err == nil && early != nil {
		h.Errorf("Check: %v, Apply: %v", early, err)
	}
	return disk, err
}

// mark says that the archive has all writes up to a sequence number and a time after the
// last write. It returns the name of the mark.
func (h *history) mark(names []string, last uint64, seconds int) string {
	b, err := hex.DecodeString(names[0][9:41])
	h.check("id", err)
	id := [16]byte(b)
	name := archive.MarkName(0, id)
	h.chunks[name] = archive.AppendMark(nil, &archive.Mark{DBID: id, Last: last, At: h.last + edm.Ticks(seconds*10_000_000)})
	return name
}

// TestRefusals damages the archive, and asks for moments that it does not reach. Each error
// says what to do.
func TestRefusals(t *testing.T) {
	const second = 10_000_000
	for _, c := range []struct {
		name   string
		until  edm.Ticks // after the last write
		change func(h *history, names []string)
		want   error
		says   string
	}{
		{"after the last write", 1, nil, rollforward.ErrOutOfRange, "the greatest possible time is 2026-11-22T12:00:05Z"},
		{
			"missing chunk", 0, func(h *history, names []string) { delete(h.chunks, names[2]) }, rollforward.ErrOutOfRange,
			"are missing; the greatest possible time is 2026-11-22T12:00:03Z",
		},
		{
			"moment in a missing chunk", -second / 2, func(h *history, names []string) { delete(h.chunks, names[2]) }, rollforward.ErrOutOfRange,
			"are missing; the greatest possible time is 2026-11-22T12:00:03Z",
		},
		{"missing first chunk", 0, func(h *history, names []string) { delete(h.chunks, names[0]) }, rollforward.ErrOutOfRange, "are missing"},
		{
			"no chunk", 0, func(h *history, names []string) { clear(h.chunks) }, rollforward.ErrOutOfRange,
			"the greatest possible time is 2026-11-22T12:00:01Z",
		},
		{"truncated", 0, func(h *history, names []string) { h.chunks[names[1]] = h.chunks[names[1]][:3000] }, corrupt.ErrCorrupt, "truncated"},
		{"short", 0, func(h *history, names []string) { h.chunks[names[1]] = h.chunks[names[1]][:30] }, corrupt.ErrCorrupt, "truncated"},
		{"damaged", 0, func(h *history, names []string) { h.chunks[names[1]][4200] ^= 1 }, corrupt.ErrCorrupt, "sum is"},
		{"another chunk", 0, func(h *history, names []string) { h.chunks[names[1]] = h.chunks[names[2]] }, corrupt.ErrCorrupt, "it is the chunk"},
		{"another database", 0, func(h *history, names []string) {
			for _, name := range names {
				digit := "0"
				if name[9] == '0' {
					digit = "1"
				}
				h.chunks[name[:9]+digit+name[10:]] = h.chunks[name]
				delete(h.chunks, name)
			}
		}, rollforward.ErrOutOfRange, "another database"},
		{"renamed to another database", 0, func(h *history, names []string) {
			b := bytes.Clone(h.chunks[names[1]])
			b[20] ^= 1
			h.chunks[names[1]] = b
		}, corrupt.ErrCorrupt, "sum is"},
		{"foreign name", 0, func(h *history, names []string) { h.chunks[names[0]+"x"] = nil }, nil, "not the name of an archived chunk"},
		{"mark", 5 * second, func(h *history, names []string) { h.mark(names, 6, 6) }, nil, ""},
		{
			"after the mark", 7 * second, func(h *history, names []string) { h.mark(names, 6, 6) }, rollforward.ErrOutOfRange,
			"the greatest possible time is 2026-11-22T12:00:11Z",
		},
		{
			"mark of writes that are missing", 5 * second, func(h *history, names []string) { h.mark(names, 8, 6) }, rollforward.ErrOutOfRange,
			"the greatest possible time is 2026-11-22T12:00:05Z",
		},
		{"damaged mark", 0, func(h *history, names []string) { h.chunks[h.mark(names, 6, 6)][50] ^= 1 }, corrupt.ErrCorrupt, "sum is"},
		{"not needed and damaged", -2 * second, func(h *history, names []string) { h.chunks[names[3]][4200] ^= 1 }, nil, ""},
		{"whole", 0, func(*history, []string) {}, nil, ""},
		{"between two writes", -second / 2, func(*history, []string) {}, nil, ""},
		{"the backup", -4 * second, func(h *history, names []string) { clear(h.chunks) }, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHistory(t)
			names := slices.Sorted(maps.Keys(h.chunks))
			if c.change != nil {
				c.change(h, names)
			}
			disk, err := h.apply(h.last + c.until)
			if c.says != "" {
				if err == nil || !errors.Is(err, c.want) && c.want != nil || !strings.Contains(err.Error(), c.says) {
					t.Fatalf("got %v, want %v with %q", err, c.want, c.says)
				}
				return
			}
			h.check("Apply", err)
			db, err := engine.Open("backup", engine.Options{FS: disk, ReadOnly: true})
			h.check("Open", err)
			defer db.Close()
			got, err := dump(t.Context(), db)
			h.check("dump", err)
			if want := 6 + int(min(0, c.until)-9_999_999)/second; len(got) != want {
				t.Errorf("%d lines, want %d: %q", len(got), want, got)
			}
		})
	}
}
