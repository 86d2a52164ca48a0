// Package e2e drives a Tablerock server, a process of its own behind a real
// socket, with the official clients of the Table service: the Go SDK in the tests
// of this package, the JavaScript SDKs in the folder js.
//
//	go test ./...                          starts its own servers
//	npm ci --prefix js && go test ./...    the JavaScript part too
//	TABLEROCK_E2E_CONNECTION_STRING='AccountName=...;AccountKey=...;TableEndpoint=...' go test ./...
//	TABLEROCK_E2E_PROGRAM=/usr/bin/tablerock go test ./...
//
// The form with a connection string judges any other service of the protocol, by
// those tests that start no server of their own; the last form judges a program
// that was built elsewhere.
package e2e
