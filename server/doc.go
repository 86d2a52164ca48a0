// Package server implements the Azure Table protocol over any store.Store, as an
// http.Handler.
//
// New returns the handler. Mount it at the root of an HTTP server, or in a mux at the path
// of each account, with and without the final slash. Do not use http.StripPrefix: the
// requests in a batch have the whole path, and would be refused, and the URLs in
// responses would lack the prefix:
//
//	h, err := server.New(server.Options{Accounts: []server.Account{{Name: "books", Keys: keys, Store: db}}})
//	...
//	mux.Handle("/books", h)
//	mux.Handle("/books/", h)
//	mux.Handle("/books-secondary/", h) // the secondary endpoint, which only reads
//
// Clients then use http://HOST/books as their table endpoint. A host whose second label is
// "table", such as books.table.localhost, names the account too; its paths begin with the
// resource, so mount the handler at the root of that host. Names of Kubernetes, such as
// books.table.svc.cluster.local, name none.
//
// GET /healthz answers 200 without authorization, unless an account has that name.
//
// The handler limits bodies, pages and the memory of all requests together. It sets no
// deadlines on connections: set those of http.Server.
//
// A request passes through the package like this: package request parses path, query and
// headers; exchange.go checks version, credentials and permission and finds the operation
// in route.go; tables.go, query.go, write.go, batch.go, acl.go or properties.go executes
// it. Package memory has the memory of its body and of its response, and package metadata
// reads and writes properties and policies. Package problem alone maps errors to statuses and
// codes.
package server
