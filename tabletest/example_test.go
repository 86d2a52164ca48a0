package tabletest_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/server/faults"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/tabletest"
)

// T replaces the *testing.T of a test, which an example does not have.
type T struct {
	testing.TB
	cleanups []func()
}

func (*T) Helper() {}

func (t *T) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }

func (*T) Failed() bool { return false }

func (t *T) end() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

// Pass srv.ConnectionString() to the program under test, or as here use the endpoint
// and a client that signs requests.
func ExampleNew() {
	t := new(T)
	defer t.end()
	srv := tabletest.New(t)

	client := srv.Client()
	created, err := client.Post(srv.Endpoint+"/Tables", "application/json", strings.NewReader(`{"TableName":"Orders"}`))
	if err != nil {
		panic(err)
	}
	defer created.Body.Close()
	fmt.Println(created.Status)

	answer, err := client.Get(srv.Endpoint + "/Tables?$format=application/json%3Bodata%3Dnometadata")
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", text)

	// Output:
	// 201 Created
	// {"value":[{"TableName":"Orders"}]}
}

// The first insert fails after it was executed: the client cannot know whether it was.
func ExampleWithFaults() {
	t := new(T)
	defer t.end()
	srv := tabletest.New(t, tabletest.WithFaults(1,
		faults.Rule{Operation: "CreateTable", Answer: faults.CutAfter, Probability: 1, Times: 1}))

	client := srv.Client()
	for range 2 {
		created, err := client.Post(srv.Endpoint+"/Tables", "application/json", strings.NewReader(`{"TableName":"Orders"}`))
		if err != nil {
			fmt.Println("the connection was cut")
			continue
		}
		defer created.Body.Close()
		fmt.Println(created.Status)
	}

	// Output:
	// the connection was cut
	// 409 Conflict
}

// query prints the entities of a table.
func query(srv *tabletest.Server, table, options string) {
	answer, err := srv.Client().Get(srv.Endpoint + "/" + table + "()?$format=application/json%3Bodata%3Dnometadata&" + options)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%s\n", text)
}

// Several tests share a server with the same data: each begins with Reset.
func ExampleServer_Reset() {
	t := new(T)
	defer t.end()
	srv := tabletest.New(t)
	ctx := context.Background()
	if err := srv.Store.CreateTable(ctx, "Orders"); err != nil {
		panic(err)
	}
	loaded := srv.Snapshot()

	for _, row := range []string{"first", "second"} {
		srv.Reset(loaded)
		order := edm.Entity{Key: edm.Key{Partition: "eu", Row: row}}
		if _, err := srv.Store.Apply(ctx, "Orders", store.Insert(order)); err != nil {
			panic(err)
		}
		query(srv, "Orders", "$select=RowKey")
	}

	// Output:
	// {"value":[{"RowKey":"first"}]}
	// {"value":[{"RowKey":"second"}]}
}

func ExampleServer_Import() {
	t := new(T)
	defer t.end()
	dir, err := os.MkdirTemp("", "tabletest-*")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "orders.csv")
	if err := os.WriteFile(file, []byte("PartitionKey,RowKey,Total@Edm.Double\neu,1,42.5\n"), 0o600); err != nil {
		panic(err)
	}

	srv := tabletest.New(t)
	srv.Import("Orders", file)
	query(srv, "Orders", "$select=RowKey,Total")

	// Output:
	// {"value":[{"RowKey":"1","Total":42.5}]}
}

func ExampleWithTimestamps() {
	t := new(T)
	defer t.end()
	now := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	srv := tabletest.New(t, tabletest.WithTimestamps(func() time.Time { return now }))
	ctx := context.Background()
	if err := srv.Store.CreateTable(ctx, "Orders"); err != nil {
		panic(err)
	}

	for _, row := range []string{"1", "2"} {
		now = now.Add(time.Hour)
		order := edm.Entity{Key: edm.Key{Partition: "eu", Row: row}}
		if _, err := srv.Store.Apply(ctx, "Orders", store.Insert(order)); err != nil {
			panic(err)
		}
	}
	query(srv, "Orders", "$select=RowKey,Timestamp")

	// Output:
	// {"value":[{"RowKey":"1","Timestamp":"2024-02-29T13:00:00Z"},{"RowKey":"2","Timestamp":"2024-02-29T14:00:00Z"}]}
}
