package engine_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// Types of extension records that no build knows.
const (
	unknownType     = 0x7001
	unknownFileType = 0x7002
)

func unknownRecord(typ uint16) []byte {
	return feature.AppendRecord(nil, feature.Record{Type: typ, Data: []byte("of a later build")})
}

// editManifest changes the manifest in dir.
func editManifest(t *testing.T, disk vfs.FS, dir string, edit func(m *manifest.Manifest)) {
	t.Helper()
	m, err := manifest.Read(disk, dir)
	check(t, "read manifest", err)
	edit(m)
	check(t, "write manifest", manifest.Write(disk, dir, m))
}

// patchManifest changes bytes of the manifest of db and corrects its sum.
func patchManifest(t *testing.T, disk *vfs.Mem, edit func(b []byte)) {
	t.Helper()
	b := readFile(t, disk, "db/MANIFEST")
	edit(b)
	end := len(b) - 8
	binary.LittleEndian.PutUint64(b[end:], xxhash.Sum64(b[:end])^xxhash.Sum64(b[24:40]))
	check(t, "Patch", disk.Patch("db/MANIFEST", 0, b))
}

// setSSTableFeatures replaces the only sstable of db by one with an extension area and
// features, and lists it in the manifest.
func setSSTableFeatures(t *testing.T, disk *vfs.Mem, required, optional uint64, area []byte) {
	t.Helper()
	const footer = 184
	editManifest(t, disk, "db", func(m *manifest.Manifest) {
		f := &m.Files[0]
		file := xxhash.Sum64(binary.LittleEndian.AppendUint64(f.Origin[:], f.Number))
		appendSum := func(b []byte, from int) []byte {
			x := (file + uint64(from)) * 0x9e3779b97f4a7c15
			x = (x ^ x>>32) * 0xd6e8feb86659fd93
			return binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b[from:])^x^x>>29)
		}
		name := "db/" + filename.Make(filename.SSTable, f.Number)
		old := readFile(t, disk, name)
		at := len(old) - footer
		b := slices.Clone(old[:at])
		if len(area) > 0 {
			b = appendSum(append(b, area...), at)
		}
		from := len(b)
		b = append(b, old[at:len(old)-8]...)
		for i, v := range []uint64{uint64(at), uint64(from - at), required, optional} {
			binary.LittleEndian.PutUint64(b[from+8*i:], v)
		}
		b = appendSum(b, from)
		check(t, "Remove", disk.Remove(name))
		writeFile(t, disk, name, b)
		f.Size, f.Hash = int64(len(b)), xxhash.Sum64(b)
	})
}

// TestUnknownRequiredFeature opens databases that require what this build does not know.
// Open must refuse them with the name of the feature, and change nothing.
func TestUnknownRequiredFeature(t *testing.T) {
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 20, 100)
	check(t, "Compact", db.Compact(t.Context()))
	check(t, "Close", db.Close())
	require := func(area []byte) func(t *testing.T, disk *vfs.Mem) {
		return func(t *testing.T, disk *vfs.Mem) {
			t.Helper()
			editManifest(t, disk, "db", func(m *manifest.Manifest) { m.Extensions = area })
			patchManifest(t, disk, func(b []byte) { binary.LittleEndian.PutUint64(b[72:], 1<<5) })
		}
	}
	makeRequired := func(disk *vfs.Mem, area []byte) {
		patchManifest(t, disk, func(b []byte) { b[bytes.Index(b, area)+2] = 1 })
	}
	for _, c := range []struct {
		name, want string
		change     func(t *testing.T, disk *vfs.Mem)
	}{
		{"manifest", `"range-tombstones"`, require(feature.AppendName(unknownRecord(unknownType), 5, "range-tombstones"))},
		{"manifest, feature without a name", "bit 5", require(nil)},
		{"record of the manifest", "extension record of type 28673", func(t *testing.T, disk *vfs.Mem) {
			editManifest(t, disk, "db", func(m *manifest.Manifest) { m.Extensions = unknownRecord(unknownType) })
			makeRequired(disk, unknownRecord(unknownType))
		}},
		{"record of a file entry", "extension record of type 28674", func(t *testing.T, disk *vfs.Mem) {
			editManifest(t, disk, "db", func(m *manifest.Manifest) { m.Files[0].Extensions = unknownRecord(unknownFileType) })
			makeRequired(disk, unknownRecord(unknownFileType))
		}},
		{"sstable", `"columns-of-zstd"`, func(t *testing.T, disk *vfs.Mem) {
			setSSTableFeatures(t, disk, 1<<9, 0, feature.AppendName(nil, 9, "columns-of-zstd"))
		}},
		{"sstable, feature without a name", "bit 9", func(t *testing.T, disk *vfs.Mem) { setSSTableFeatures(t, disk, 1<<9, 0, nil) }},
		{"record of an sstable", "extension record of type 9", func(t *testing.T, disk *vfs.Mem) {
			setSSTableFeatures(t, disk, 0, 0, feature.AppendRecord(nil, feature.Record{Type: 9, Required: true}))
		}},
	} {
		for _, readOnly := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/readonly=%v", c.name, readOnly), func(t *testing.T) {
				disk := disk.Clone()
				c.change(t, disk)
				before := treeOf(t, disk, "db")
				o := manual(disk)
				o.ReadOnly = readOnly
				_, err := engine.Open("db", o)
				if !errors.Is(err, store.ErrNewerFormat) || errors.Is(err, store.ErrCorrupt) || !strings.Contains(fmt.Sprint(err), c.want) {
					t.Errorf("Open: %v, want %v and %s", err, store.ErrNewerFormat, c.want)
				}
				if after := treeOf(t, disk, "db"); after != before {
					t.Errorf("the directory was\n%s and is\n%s", before, after)
				}
			})
		}
	}
}

// TestOptionalFeatureSurvives sets features, records and an epoch that this build does
// not know. They must survive changes of the manifest and a checkpoint.
func TestOptionalFeatureSurvives(t *testing.T) {
	ctx := t.Context()
	disk := vfs.NewMem()
	db := mustCreate(t, manual(disk))
	fill(t, db, "p", 20, 100)
	check(t, "Compact", db.Compact(ctx))
	if s, err := db.Stats(); err != nil || s.Epoch != 0 {
		t.Errorf("the epoch of a new database is %d, %v, want 0", s.Epoch, err)
	}
	check(t, "Close", db.Close())
	setSSTableFeatures(t, disk, 0, 1<<62, unknownRecord(unknownFileType))
	const epoch, optional = 41, 1<<63 | 4
	editManifest(t, disk, "db", func(m *manifest.Manifest) {
		m.Optional, m.Epoch, m.Extensions = optional, epoch, unknownRecord(unknownType)
		m.Files[0].Extensions = unknownRecord(unknownFileType)
	})
	old := readFile(t, disk, "db/MANIFEST")

	db = mustOpen(t, "db", manual(disk))
	fill(t, db, "q", 20, 100)
	check(t, "Flush", db.Flush(ctx))
	if s, err := db.Stats(); err != nil || s.Epoch != epoch {
		t.Errorf("the epoch is %d, %v, want %d", s.Epoch, err, epoch)
	}
	if n := len(dump(t, db, store.Query{})); n != 40 {
		t.Errorf("%d entities, want 40", n)
	}
	if r, err := db.Verify(ctx); err != nil || len(r.Findings) > 0 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
	check(t, "Checkpoint", db.Checkpoint(ctx, "copy"))
	check(t, "Close", db.Close())
	if bytes.Equal(old, readFile(t, disk, "db/MANIFEST")) {
		t.Fatal("the manifest was not rewritten")
	}
	for _, dir := range []string{"db", "copy"} {
		m, err := manifest.Read(disk, dir)
		check(t, "read manifest", err)
		if m.Optional != optional || m.Epoch != epoch || !bytes.Equal(m.Extensions, unknownRecord(unknownType)) {
			t.Errorf("%s: optional features %#x, epoch %d, extensions %q", dir, m.Optional, m.Epoch, m.Extensions)
		}
		kept := slices.ContainsFunc(m.Files, func(f manifest.File) bool { return bytes.Equal(f.Extensions, unknownRecord(unknownFileType)) })
		if !kept || len(m.Files) != 2 {
			t.Errorf("%s: the extensions of the file are lost: %+v", dir, m.Files)
		}
		view := manual(disk)
		view.ReadOnly = true
		db := mustOpen(t, dir, view)
		if s, err := db.Stats(); err != nil || s.Epoch != epoch {
			t.Errorf("%s: the epoch is %d, %v, want %d", dir, s.Epoch, err, epoch)
		}
		check(t, "Close", db.Close())
	}
}

// TestFileOfAnotherDatabase lists an sstable of another database in the manifest. It is
// read if its entry names the id of that database, and refused otherwise.
func TestFileOfAnotherDatabase(t *testing.T) {
	ctx := t.Context()
	disk := vfs.NewMem()
	other := mustOpen(t, "other", manual(disk))
	check(t, "CreateTable", other.CreateTable(ctx, table))
	fill(t, other, "shared", 20, 100)
	check(t, "Flush", other.Flush(ctx))
	check(t, "Close", other.Close())
	theirs, err := manifest.Read(disk, "other")
	check(t, "read manifest", err)
	shared := theirs.Files[0]
	name := filename.Make(filename.SSTable, shared.Number)

	db := mustCreate(t, manual(disk))
	fill(t, db, "own", 30, 100)
	check(t, "Compact", db.Compact(ctx))
	check(t, "Close", db.Close())
	if slices.Contains(files(t, disk, "db", ".sst"), name) {
		t.Fatalf("both databases have a file %s", name)
	}
	check(t, "Link", disk.Link("other/"+name, "db/"+name))
	check(t, "SyncDir", disk.SyncDir("db"))
	var own [16]byte
	editManifest(t, disk, "db", func(m *manifest.Manifest) {
		own = m.DBID
		if own == shared.Origin {
			t.Fatal("both databases have one id")
		}
		shared.Run = m.NextFile
		m.NextFile++
		m.HighWater = max(m.HighWater, theirs.HighWater)
		m.Files = append(m.Files, shared)
	})

	db = mustOpen(t, "db", manual(disk))
	if n := len(dump(t, db, store.Query{})); n != 50 {
		t.Errorf("%d entities, want 50", n)
	}
	got, err := db.Get(ctx, table, edm.Key{Partition: "shared", Row: "000007"})
	if n, _ := got.Properties.Get("N").Int64(); err != nil || n != 7 {
		t.Errorf("entity of the other database: %v, %v", got, err)
	}
	if r, err := db.Verify(ctx); err != nil || len(r.Findings)+len(r.Unknown) > 0 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
	check(t, "Close", db.Close())

	wrong := disk.Clone()
	editManifest(t, wrong, "db", func(m *manifest.Manifest) {
		for i := range m.Files {
			m.Files[i].Origin = own
		}
	})
	var damage *store.CorruptError
	if _, err := engine.Open("db", manual(wrong)); !errors.As(err, &damage) || damage.File != name || damage.Offset != 0 {
		t.Errorf("Open with the wrong id in the entry: %v, want damage of %s", err, name)
	}

	db = mustOpen(t, "db", manual(disk))
	check(t, "Compact", db.Compact(ctx))
	if n := len(dump(t, db, store.Query{})); n != 50 {
		t.Errorf("%d entities after a compaction, want 50", n)
	}
	check(t, "Close", db.Close())
	m, err := manifest.Read(disk, "db")
	check(t, "read manifest", err)
	for _, f := range m.Files {
		if f.Origin != own {
			t.Errorf("file %d has the id %x after a compaction, want %x", f.Number, f.Origin, own)
		}
	}
	other = mustOpen(t, "other", manual(disk))
	if n := len(dump(t, other, store.Query{})); n != 20 {
		t.Errorf("the other database has %d entities, want 20", n)
	}
}
