// Package e2e tests a Tablerock server, in its own process, with the official clients of the
// Table service: the Go SDK in this package, the JavaScript SDKs in the folder js.
//
//	go test ./...                          start servers for the tests
//	npm ci --prefix js && go test ./...    also run the JavaScript tests
//	TABLEROCK_E2E_CONNECTION_STRING='AccountName=...;AccountKey=...;TableEndpoint=...' go test ./...
//	TABLEROCK_E2E_PROGRAM=/usr/bin/tablerock go test ./...
//	TABLEROCK_AZURITE=.../azurite/dist/src/table/main.js go test -run Azurite ./...
//
// With a connection string, the tests that start no server run against any service of the
// protocol. TABLEROCK_E2E_PROGRAM is an existing program to test. The last form compares it
// with Azurite.
package e2e
