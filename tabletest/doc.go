// Package tabletest runs a server of the Azure Table protocol for a test, in the
// process of the test, in memory, on a port of loopback. A server starts in less
// than a millisecond, so each test can have its own:
//
//	srv := tabletest.New(t)
//	client, err := aztables.NewServiceClientFromConnectionString(srv.ConnectionString(), nil)
//
// The server stops when the test ends. If the test failed, it prints the requests that the
// server got.
//
// Tests that need the same data share a server: Import loads a file, Snapshot keeps a state
// and Reset returns to it in less than a millisecond, however much is stored. WithFaults makes
// requests fail, to test retries, and WithTimestamps makes Timestamps repeatable.
package tabletest
