package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/backup/backuptest"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
)

// TestArchive archives a chunk twice, and another one of its name.
func TestArchive(t *testing.T) {
	target := backuptest.NewTarget(1, 0)
	a := backup.NewArchive(target, "acct")
	const name = "00000000/db/1-2.log"
	chunk := bytes.Repeat([]byte("chunk"), 1<<19)
	for range 2 {
		if err := a.Put(t.Context(), name, bytes.NewReader(chunk)); err != nil {
			t.Fatal(err)
		}
	}
	for what, other := range map[string][]byte{
		"shorter": chunk[:1<<20], "longer": append(bytes.Clone(chunk), 0), "other bytes": append(bytes.Clone(chunk[1:]), 1), "empty": nil,
	} {
		if err := a.Put(t.Context(), name, bytes.NewReader(other)); !errors.Is(err, backup.ErrOtherHistory) {
			t.Errorf("%s: %v", what, err)
		}
	}
	objects, err := target.List(t.Context(), "")
	if err != nil || len(objects) != 1 || objects[0].Name != "acct/archive/"+name || objects[0].Size != int64(len(chunk)) {
		t.Errorf("objects %v, %v", objects, err)
	}
}

// lostAnswer is an archive whose first calls succeed without saying so.
type lostAnswer struct {
	engine.Archive
	lost int
}

func (a *lostAnswer) Put(ctx context.Context, name string, chunk io.Reader) error {
	err := a.Archive.Put(ctx, name, chunk)
	if err == nil && a.lost > 0 {
		a.lost--
		return errors.New("the answer is lost")
	}
	return err
}

// TestDamageAfterArchival damages a file of a Load that is archived, before the database knows. That is damage and no other
// history: after some attempts the database must give the chunk up, and archive those behind it.
func TestDamageAfterArchival(t *testing.T) {
	disk := vfs.NewMem()
	a := &lostAnswer{Archive: backup.NewArchive(backuptest.NewTarget(1, 0), account)}
	db, err := engine.Open("db", engine.Options{FS: disk, Archive: a, Testing: engine.TestHooks{Manual: true}})
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	ok(db.CreateTable(t.Context(), "Things"))
	archiveAll := func() (err error) {
		for worked := true; worked && err == nil; {
			worked, err = db.Step(t.Context())
		}
		return err
	}
	ok(db.Flush(t.Context()))
	ok(archiveAll())
	_, err = db.Load(t.Context(), "Things", func(yield func(edm.Entity, error) bool) {
		r := rand.NewChaCha8([32]byte{})
		for i := range 50 {
			value := make([]byte, 60_000) // which no compression makes shorter
			_, _ = r.Read(value)
			if !yield(edm.Entity{Key: edm.Key{Row: strconv.Itoa(i)}, Properties: edm.Properties{{Name: "B", Value: edm.Binary(value)}}}, nil) {
				return
			}
		}
	}, engine.LoadOptions{})
	ok(err)
	a.lost = 1
	if err := archiveAll(); err == nil {
		t.Fatal("no answer was lost")
	}
	names, err := disk.List("db")
	ok(err)
	for _, dir := range names {
		if !strings.HasSuffix(dir, ".load") {
			continue
		}
		files, err := disk.List("db/" + dir)
		ok(err)
		for _, file := range files {
			if name := "db/" + dir + "/" + file; strings.HasSuffix(file, ".sst") {
				b, err := vfs.ReadFile(disk, name, 4<<20)
				ok(err)
				ok(disk.Remove(name)) // the link: the database itself has no damage
				f, err := disk.Create(name)
				ok(err)
				b[100] ^= 1
				_, err = f.WriteAt(b, 0)
				ok(errors.Join(err, f.Close()))
			}
		}
	}
	ok(db.CreateTable(t.Context(), "Behind"))
	ok(db.Flush(t.Context()))
	for range 10 {
		if err = archiveAll(); errors.Is(err, backup.ErrOtherHistory) {
			t.Fatal(err)
		}
	}
	if stats, serr := db.Stats(); err != nil || serr != nil || stats.ArchiveWaiting != 0 {
		t.Errorf("%d chunks wait, %v, %v", stats.ArchiveWaiting, err, serr)
	}
	ok(db.Close())
}
