package commitlog

import (
	"cmp"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/vfs/errorfs"
)

// world is a log in an in-memory file system.
type world struct {
	log     *Log
	disk    *vfs.Mem
	fs      *errorfs.FS
	rotated []*Segment // each new active segment
	ready   atomic.Int64
}

func newWorld(tb testing.TB, o Options) *world {
	tb.Helper()
	w := &world{disk: vfs.NewCrashMem()}
	w.fs = errorfs.Wrap(w.disk, nil)
	number := uint64(0)
	now := edm.Ticks(1000)
	o.FS = w.fs
	o.SegmentBytes = max(o.SegmentBytes, 64<<10)
	o.NoPreallocate = true
	o.Now = func() edm.Ticks { return now }
	o.NextNumber = func() uint64 { number++; return number }
	o.Rotated = func(s *Segment) {
		s.Ref() // as the read state has
		w.rotated = append(w.rotated, s)
	}
	o.Ready = func() { w.ready.Add(1) }
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	o.Dir = "."
	var err error
	if w.log, err = New(o, 0, 0, 0); err != nil {
		tb.Fatalf("New: %v", err)
	}
	o.Rotated(w.log.Active())
	return w
}

// put returns a commit of n entries of about size bytes, each under its own key.
func put(id, n, size int) *Commit {
	return putShape(id, n, edm.Properties{{Name: "B", Value: edm.Binary(make([]byte, size))}}, nil)
}

func putShape(id, n int, props edm.Properties, shape *codec.Shape) *Commit {
	if shape == nil {
		shape = oneShape(props)
	}
	c := NewCommit()
	c.BeginPart(codec.PartitionHash(key(id, 0)), codec.PartitionLen(key(id, 0)))
	for i := range n {
		key := key(id, i)
		c.Put(key, codec.KeyHash(key), shape, props)
	}
	return c
}

func key(id, i int) []byte {
	return codec.AppendKey(nil, 16, fmt.Sprint("p", id), fmt.Sprint(i))
}

var binaryShape = codec.NewShape(edm.Properties{{Name: "B", Value: edm.Binary(nil)}})

func oneShape(props edm.Properties) *codec.Shape {
	if binaryShape.Matches(props) {
		return binaryShape
	}
	return codec.NewShape(props)
}

// read returns the sequence number of the version of a key that readers see.
func (w *world) read(id, i int) (seq uint64, ok bool) {
	k := key(id, i)
	for j := len(w.rotated) - 1; j >= 0; j-- {
		var row codec.Row
		if seq, _, ok := w.rotated[j].Table.Get(k, codec.PartitionHash(k), codec.MaxSeq, &row); ok {
			return seq, true
		}
	}
	return 0, false
}

// pending reports whether writers see an entry of a key that is not published.
func (w *world) pending(id, i int) bool {
	k := key(id, i)
	_, ok := w.log.Pending(codec.PartitionHash(k), codec.KeyHash(k), k)
	return ok
}

func must(tb testing.TB, what string, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatalf("%s: %v", what, err)
	}
}
