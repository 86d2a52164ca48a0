package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

func Example() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "orders")
	defer os.RemoveAll(dir)

	db, err := engine.Open(dir, engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	if err := db.CreateTable(ctx, "Orders"); err != nil && !errors.Is(err, store.ErrTableExists) {
		log.Fatal(err)
	}

	order := func(row string, total float64, paid bool) edm.Entity {
		return edm.Entity{
			Key: edm.Key{Partition: "eu", Row: row},
			Properties: edm.Properties{
				{Name: "Total", Value: edm.Double(total)},
				{Name: "Paid", Value: edm.Boolean(paid)},
			},
		}
	}

	// An entity group transaction: both orders are stored, or neither is.
	_, err = db.Apply(ctx, "Orders", store.Insert(order("0001", 42.5, true)), store.Insert(order("0002", 99, false)))
	if err != nil {
		log.Fatal(err)
	}

	unpaid := filter.MustParse("PartitionKey eq 'eu' and Total gt 50 and Paid eq false")
	for e, err := range db.Entities(ctx, "Orders", store.Query{Filter: unpaid, Limit: 100}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key.Row, e.Properties.Get("Total"))
	}
	// Output: 0002 99
}

// A database is a directory. Open creates it if it is empty or missing.
func ExampleOpen() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)

	db, err := engine.Open(filepath.Join(dir, "db"), engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	_, err = engine.Open(filepath.Join(dir, "db"), engine.Options{})
	fmt.Println("second Open:", errors.Is(err, store.ErrLocked))
	// Output: second Open: true
}

// A database in memory is fast to open, for example for each test.
func ExampleOpen_inMemory() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem(), SegmentBytes: 64 << 10})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	fmt.Println(db.CreateTable(ctx, "Orders"))
	// Output: <nil>
}

func ExampleOptions() {
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)

	// Two databases share one cache of 64 MiB. The second one uses little memory
	// for its log, and may lose the newest writes in a crash.
	cache := engine.NewCache(64 << 20)
	orders, err := engine.Open(filepath.Join(dir, "orders"), engine.Options{Cache: cache, Compression: engine.CompressSmall})
	if err != nil {
		log.Fatal(err)
	}
	defer orders.Close()
	sessions, err := engine.Open(filepath.Join(dir, "sessions"), engine.Options{Cache: cache, SegmentBytes: 1 << 20, NoSync: true})
	if err != nil {
		log.Fatal(err)
	}
	defer sessions.Close()
	// Output:
}

// A batch changes entities of one partition, all or none of them. An OpError
// tells which operation failed.
func ExampleDB_Apply() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Orders"); err != nil {
		log.Fatal(err)
	}

	item := func(row string, n int32) edm.Entity {
		return edm.Entity{Key: edm.Key{Partition: "order 7", Row: row}, Properties: edm.Properties{{Name: "Count", Value: edm.Int32(n)}}}
	}
	_, err = db.Apply(ctx, "Orders", store.Insert(item("pen", 3)), store.InsertOrReplace(item("paper", 1)))
	fmt.Println(err)

	_, err = db.Apply(ctx, "Orders", store.Delete(edm.Key{Partition: "order 7", Row: "paper"}, store.Any), store.Insert(item("pen", 4)))
	var failed *store.OpError
	fmt.Println(errors.As(err, &failed), failed.Index, errors.Is(err, store.ErrEntityExists))

	_, err = db.Get(ctx, "Orders", edm.Key{Partition: "order 7", Row: "paper"})
	fmt.Println(err)
	// Output:
	// <nil>
	// true 1 true
	// <nil>
}

// ApplyBatches writes entities of many partitions with few syncs. Each batch has its own
// outcome.
func ExampleDB_ApplyBatches() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Readings"); err != nil {
		log.Fatal(err)
	}

	var batches [][]store.Op
	for _, device := range []string{"door", "lamp", "door", "fan"} {
		reading := edm.Entity{Key: edm.Key{Partition: device, Row: "2026-11-26T10:00"}, Properties: edm.Properties{{Name: "On", Value: edm.Boolean(true)}}}
		batches = append(batches, []store.Op{store.Insert(reading)})
	}
	results, err := db.ApplyBatches(ctx, "Readings", batches)
	var failed engine.BatchErrors
	if errors.As(err, &failed) {
		for i, err := range failed {
			if err != nil {
				fmt.Printf("%s: exists already: %t\n", batches[i][0].Entity.Key.Partition, errors.Is(err, store.ErrEntityExists))
			}
		}
	}
	fmt.Println(len(results[0]), len(results[2]), len(results[3]))
	// Output:
	// door: exists already: true
	// 1 0 1
}

// A conditional update replaces an entity only if nobody else changed it since it
// was read. Read again and retry on ErrPrecondition.
func ExampleDB_Apply_conditional() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Counters"); err != nil {
		log.Fatal(err)
	}
	key := edm.Key{Partition: "site", Row: "visits"}
	if _, err := db.Apply(ctx, "Counters", store.Insert(edm.Entity{Key: key})); err != nil {
		log.Fatal(err)
	}

	increment := func() error {
		for {
			e, err := db.Get(ctx, "Counters", key)
			if err != nil {
				return err
			}
			n, _ := e.Properties.Get("N").Int64() // 0 if there is no N yet
			next := edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int64(n + 1)}}}
			_, err = db.Apply(ctx, "Counters", store.Replace(next, e.Timestamp.ETag()))
			if !errors.Is(err, store.ErrPrecondition) {
				return err
			}
		}
	}
	for range 3 {
		if err := increment(); err != nil {
			log.Fatal(err)
		}
	}
	e, err := db.Get(ctx, "Counters", key)
	fmt.Println(e.Properties.Get("N"), err)
	// Output: 3 <nil>
}

// Resume is the key at which the next page begins. It can be stored and used
// later, by another process too.
func ExampleDB_Query() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Letters"); err != nil {
		log.Fatal(err)
	}
	for _, row := range []string{"a", "b", "c", "d", "e"} {
		if _, err := db.Apply(ctx, "Letters", store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: row}})); err != nil {
			log.Fatal(err)
		}
	}

	page := func(from *edm.Key) (next *edm.Key, err error) {
		cursor := db.Query(ctx, "Letters", store.Query{From: from, Limit: 2})
		defer cursor.Close()
		var rows []string
		for cursor.Next() {
			rows = append(rows, cursor.Row().Key().Row)
		}
		fmt.Println(rows)
		return cursor.Resume(), cursor.Err()
	}
	for from, more := (*edm.Key)(nil), true; more; more = from != nil {
		if from, err = page(from); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// [a b]
	// [c d]
	// [e]
}

// The sum of a property, read by columns where the rows lie in columns: those in files.
func ExampleDB_Query_columns() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Orders"); err != nil {
		log.Fatal(err)
	}
	for n := range 1000 {
		order := store.Insert(edm.Entity{
			Key:        edm.Key{Partition: "eu", Row: fmt.Sprintf("%04d", n)},
			Properties: edm.Properties{{Name: "Items", Value: edm.Int32(int32(n % 10))}},
		})
		if _, err := db.Apply(ctx, "Orders", order); err != nil {
			log.Fatal(err)
		}
	}
	if err := db.Flush(ctx); err != nil {
		log.Fatal(err)
	}

	cursor := db.Query(ctx, "Orders", store.Query{})
	defer cursor.Close()
	columns, _ := cursor.(store.ColumnCursor)
	sum := int32(0)
	var items []uint64
	for {
		if rows := columns.NextColumns(); rows != nil {
			for i := range rows.Properties() {
				if name, t := rows.Property(i); name == "Items" && t == edm.TypeInt32 {
					items = rows.AppendWords(items[:0], i)
					for _, word := range items {
						sum += int32(word)
					}
				}
			}
			continue
		}
		if !cursor.Next() {
			break
		}
		if v, ok := cursor.Row().Lookup("Items"); ok {
			n, _ := v.Int32()
			sum += n
		}
	}
	if err := cursor.Err(); err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum)
	// Output: 4500
}

// A snapshot reads the database as it was when the snapshot was taken.
func ExampleDB_Snapshot() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Stock"); err != nil {
		log.Fatal(err)
	}
	key := edm.Key{Partition: "p", Row: "pens"}
	set := func(n int32) {
		e := edm.Entity{Key: key, Properties: edm.Properties{{Name: "N", Value: edm.Int32(n)}}}
		if _, err := db.Apply(ctx, "Stock", store.InsertOrReplace(e)); err != nil {
			log.Fatal(err)
		}
	}

	set(5)
	snapshot, err := db.Snapshot()
	if err != nil {
		log.Fatal(err)
	}
	defer snapshot.Close()
	set(4)

	then, _ := snapshot.Get(ctx, "Stock", key)
	now, _ := db.Get(ctx, "Stock", key)
	fmt.Println(then.Properties.Get("N"), now.Properties.Get("N"))
	// Output: 5 4
}

// A checkpoint is a copy of a running database in a new directory, ready to open.
func ExampleDB_Checkpoint() {
	ctx := context.Background()
	dir, _ := os.MkdirTemp("", "example")
	defer os.RemoveAll(dir)
	db, err := engine.Open(filepath.Join(dir, "db"), engine.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Orders"); err != nil {
		log.Fatal(err)
	}

	if err := db.Checkpoint(ctx, filepath.Join(dir, "backup")); err != nil {
		log.Fatal(err)
	}

	backup, err := engine.Open(filepath.Join(dir, "backup"), engine.Options{ReadOnly: true})
	if err != nil {
		log.Fatal(err)
	}
	defer backup.Close()
	tables, err := backup.Tables(ctx, "", 0)
	fmt.Println(len(tables), tables[0].Name, err)
	// Output: 1 Orders <nil>
}

// A load writes many entities without transactions. A later entity with the same key
// replaces an earlier one.
func ExampleDB_Load() {
	ctx := context.Background()
	db, err := engine.Open("db", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	if err := db.CreateTable(ctx, "Readings"); err != nil {
		log.Fatal(err)
	}

	readings := func(yield func(edm.Entity, error) bool) {
		for i := range 1000 {
			e := edm.Entity{
				Key:        edm.Key{Partition: fmt.Sprintf("sensor-%02d", i%10), Row: fmt.Sprintf("%06d", i/10)},
				Properties: edm.Properties{{Name: "Celsius", Value: edm.Double(20 + float64(i%7))}},
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	result, err := db.Load(ctx, "Readings", readings, engine.LoadOptions{})
	if err != nil {
		log.Fatal(err)
	}
	first, _ := db.Get(ctx, "Readings", edm.Key{Partition: "sensor-03", Row: "000000"})
	fmt.Println(result.Entities, result.Installs, first.Properties.Get("Celsius"))
	// Output: 1000 1 23
}
