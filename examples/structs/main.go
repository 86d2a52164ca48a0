// Command structs keeps the stock of a shop as Go structs. It shows edm.Marshal and
// the functions of package store for structs: a batch, a query, and a change that
// fails if another program changed the entity in between.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/vfs"
)

// item is an item in a warehouse.
type item struct {
	Warehouse string   `table:",pk"`
	ID        edm.GUID `table:",rk"`
	ETag      edm.ETag `table:",etag"`
	Name      string
	Count     int
	Price     float64
	Checked   time.Time `table:",omitempty"`
	Comment   *string   // nil if there is none
	// Others holds the properties that other programs have added.
	Others edm.Properties `table:",rest"`
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "structs:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	db, err := engine.Open("shop", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.CreateTable(ctx, "Items"); err != nil {
		return err
	}

	// One batch: all items are stored, or none.
	comment := "heavy"
	_, err = store.Upsert(
		ctx, db, "Items",
		item{Warehouse: "north", ID: edm.GUID{1}, Name: "anvil", Count: 2, Price: 120, Comment: &comment},
		item{Warehouse: "north", ID: edm.GUID{2}, Name: "nail", Count: 9000, Price: 0.02},
	)
	if err != nil {
		return err
	}
	for i, err := range store.All[item](ctx, db, "Items", store.Query{Filter: filter.MustParse("Price lt 1")}) {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "cheap:", i.Name, i.Count)
	}
	if err := sell(ctx, db, "north", edm.GUID{1}); err != nil {
		return err
	}
	anvil, err := store.Get[item](ctx, db, "Items", edm.Key{Partition: "north", Row: edm.GUID{1}.String()})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "left:", anvil.Name, anvil.Count, *anvil.Comment)
	return nil
}

// sell takes one item out of a warehouse. It repeats the change if another program
// changed the item after it was read.
func sell(ctx context.Context, db store.Store, warehouse string, id edm.GUID) error {
	for {
		i, err := store.Get[item](ctx, db, "Items", edm.Key{Partition: warehouse, Row: id.String()})
		if err != nil {
			return err
		}
		i.Count--
		e, err := edm.Marshal(i)
		if err != nil {
			return err
		}
		if _, err := db.Apply(ctx, "Items", store.Replace(e, i.ETag)); !errors.Is(err, store.ErrPrecondition) {
			return err
		}
	}
}
