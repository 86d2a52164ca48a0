package server_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/server"
	"github.com/tablerock-db/tablerock/vfs"
)

// A program serves an account beside its own pages.
func ExampleNew() {
	db, err := engine.Open("books", engine.Options{FS: vfs.NewMem()})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	tables, err := server.New(server.Options{Accounts: []server.Account{{
		Name:  "books",
		Keys:  []string{"c2l4dGVlbiByYW5kb20gYnl0ZXMsIGFuZCBzaXh0ZWVuIG1vcmU="},
		Store: db,
	}}})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/books", tables)
	mux.Handle("/books/", tables)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "the program's own page\n") })
	host := httptest.NewServer(mux)
	defer host.Close()

	for _, path := range []string{"/", "/books/Tables"} {
		answer, err := http.Get(host.URL + path)
		if err != nil {
			log.Fatal(err)
		}
		answer.Body.Close()
		fmt.Println(path, answer.Status)
	}
	// Output:
	// / 200 OK
	// /books/Tables 403 Forbidden
}
