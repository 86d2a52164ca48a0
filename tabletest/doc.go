// Package tabletest runs a server of the Azure Table protocol for a test, in the
// process of the test, in memory, on a port of loopback. A server starts in less
// than a millisecond, so each test can have its own:
//
//	srv := tabletest.New(t)
//	client, err := aztables.NewServiceClientFromConnectionString(srv.ConnectionString(), nil)
//
// The server stops when the test ends.
package tabletest
