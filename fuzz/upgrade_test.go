package fuzz

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
)

// TestUpgrade opens the golden databases of earlier formats. A read-only open changes no
// byte; the first change of a writing open writes the manifest in the current format, and
// the sstables stay as they are.
func TestUpgrade(t *testing.T) {
	for i, dir := range goldenDirs[:len(goldenDirs)-1] {
		t.Run(dir, func(t *testing.T) {
			files := goldenFilesIn(t, dir)
			disk := diskOf(t, files)
			version := func(want uint32) {
				t.Helper()
				if m, err := manifest.Read(disk, "db"); err != nil || m.Version != want {
					t.Fatalf("the manifest is %+v, %v, want version %d", m, err, want)
				}
			}
			read := func(o engine.Options, change bool) state {
				t.Helper()
				db, err := engine.Open("db", o)
				if err != nil {
					t.Fatal(err)
				}
				defer db.Close()
				s, err := stateOf(t.Context(), db)
				if err != nil {
					t.Fatal(err)
				}
				if change {
					if err := db.Flush(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				return s
			}
			o := options(disk)
			o.ReadOnly = true
			want := read(o, false)
			checkUnchanged(t, "a read-only open", files, contents(t, disk, "db"))
			version(uint32(i) + 1)

			o.ReadOnly = false
			read(o, true)
			version(3)
			if diff := cmp.Diff(want, read(o, false), compareEntities); diff != "" {
				t.Errorf("reads differently in the current format (-want +got):\n%s", diff)
			}
			now := contents(t, disk, "db")
			for name, b := range files {
				if name[len(name)-4:] == ".sst" && string(now[name]) != string(b) {
					t.Errorf("%s was changed", name)
				}
			}
			db, err := engine.Open("db", o)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if err := db.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
			if r, err := db.Verify(t.Context()); err != nil || len(r.Findings)+len(r.Unknown) > 0 {
				t.Errorf("Verify after Compact: %+v, %v", r, err)
			}
			if s, err := stateOf(t.Context(), db); err != nil || cmp.Diff(want, s, compareEntities) != "" {
				t.Errorf("reads differently after Compact, %v", err)
			}
		})
	}
}

// TestReservedKind changes the kind of an entry in the log to that of a range tombstone,
// which is reserved: Open refuses the log as damaged and changes nothing. A later build
// that writes this kind raises the version of the segment or requires a feature.
func TestReservedKind(t *testing.T) {
	files := goldenFiles(t)
	const kindAt = 0x1043 // of the first put, see docs/format.md
	if files["000006.wal"][kindAt] != 2 {
		t.Fatalf("byte %#x is %d, want a put", kindAt, files["000006.wal"][kindAt])
	}
	files["000006.wal"][kindAt] = 4
	repair(files)
	for _, readOnly := range []bool{false, true} {
		disk := diskOf(t, files)
		o := options(disk)
		o.ReadOnly = readOnly
		var damage *store.CorruptError
		if _, err := engine.Open("db", o); !errors.As(err, &damage) || damage.File != "000006.wal" || damage.Offset != kindAt {
			t.Errorf("read-only %t: %v, want damage of 000006.wal at %#x", readOnly, err, kindAt)
		}
		checkUnchanged(t, "a refused open", files, contents(t, disk, "db"))
	}
}
