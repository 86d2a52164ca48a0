package kill

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

const (
	tableName = "Kills"
	writers   = 4
	maxBatch  = 20
)

// Child writes batches to the database in dir until it is killed or each writer has written
// the batches below until. It appends each acknowledged batch to the file acks. Writer w
// starts with batch from[w]. First it writes a line to its output.
func Child(ctx context.Context, dir, acks string, from [writers]int, until int) error {
	out, err := os.OpenFile(acks, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	db, err := engine.Open(dir, options())
	if err != nil {
		return errors.Join(err, out.Close())
	}
	if err := db.CreateTable(ctx, tableName); err != nil && !errors.Is(err, store.ErrTableExists) {
		return errors.Join(err, db.Close(), out.Close())
	}
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for b := from[w]; b < until && errs[w] == nil; b++ {
				if _, errs[w] = db.Apply(ctx, tableName, batch(w, b)...); errs[w] == nil {
					_, errs[w] = out.WriteString(fmt.Sprintf("%d %d\n", w, b))
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(append(errs, db.Close(), out.Close())...)
}

// options returns options for small files, so that flushes and compactions happen within
// milliseconds.
func options() engine.Options {
	return engine.Options{SegmentBytes: 256 << 10, FileBytes: 256 << 10, TierRuns: 2, CacheBytes: 4 << 20}
}

// batchLen returns the number of entities of batch b of a writer.
func batchLen(w, b int) int { return 1 + (b*7+w)%maxBatch }

// batch returns the operations of batch b of writer w: new entities with properties of all
// types.
func batch(w, b int) []store.Op {
	ops := make([]store.Op, batchLen(w, b))
	for i := range ops {
		ops[i] = store.InsertOrReplace(entity(w, b, i))
	}
	return ops
}

func key(w, b, i int) edm.Key {
	return edm.Key{Partition: "w" + strconv.Itoa(w), Row: fmt.Sprintf("%07d-%02d", b, i)}
}

// entity returns an entity with its properties in the order of their names, which every
// write keeps.
func entity(w, b, i int) edm.Entity {
	n := int64(w)<<40 | int64(b)<<8 | int64(i)
	return edm.Entity{Key: key(w, b, i), Properties: edm.Properties{
		{Name: "Binary", Value: edm.Binary([]byte(strconv.FormatInt(n*n, 2)))},
		{Name: "Boolean", Value: edm.Boolean(n%2 == 0)},
		{Name: "DateTime", Value: edm.DateTime(edm.Ticks(n))},
		{Name: "Double", Value: edm.Double(float64(n) / 7)},
		{Name: "Guid", Value: edm.GuidWords(uint64(n), ^uint64(n))},
		{Name: "Int32", Value: edm.Int32(int32(b))},
		{Name: "Int64", Value: edm.Int64(n)},
		{Name: "String", Value: edm.String("\u8868" + strconv.FormatInt(n, 10))},
	}}
}
