package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
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
	for e, err := range store.Entities(db.Query(ctx, "Orders", store.Query{Filter: unpaid, Limit: 100})) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key.Row, e.Properties.Get("Total"))
	}
	// Output: 0002 99
}
