// Package e2e tests a Tablerock server, in its own process, with the official clients of the
// Table service: the Go SDK in this package, the JavaScript SDKs in the folder js. The pages
// of /ui/ are tested in Chromium, which TABLEROCK_CHROMIUM can name.
//
//	go test ./...                          start servers for the tests
//	npm ci --prefix js && go test ./...    also run the JavaScript tests
//	TABLEROCK_E2E_CONNECTION_STRING='AccountName=...;AccountKey=...;TableEndpoint=...' go test ./...
//	TABLEROCK_E2E_PROGRAM=/usr/bin/tablerock go test ./...
//	TABLEROCK_SCREENSHOTS=../docs/ui go test -run TestExplorerPages    also make the pictures of docs/ui.md
//	TABLEROCK_BROWSER_DELAYS=1 go test -run TestExplorer .    slow pages and steps, at random with this seed
//	TABLEROCK_AZURITE=.../azurite/dist/src/table/main.js go test -run Azurite ./...
//	TABLEROCK_E2E_DATABASES='postgres://HOST/DB1 postgres://HOST/DB2 ...' go test ./...
//
// With a connection string, the tests that start no server run against any service of the
// protocol. TABLEROCK_E2E_PROGRAM is an existing program to test.
// TABLEROCK_AZURITE compares it with Azurite. TABLEROCK_E2E_DATABASES has about 40 empty
// databases of PostgreSQL for the servers; "go test ./store/postgres/pgtest -run TestClients
// -clients" in the main module starts a PostgreSQL for that.
package e2e
