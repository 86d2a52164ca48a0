// Package tabletest gives a test a server of Azure tables: the protocol and the
// engine of Tablerock in the test's own process, in memory, on a port of
// loopback. It starts in a fraction of a millisecond, so each test can have its
// own:
//
//	srv := tabletest.New(t)
//	client, err := aztables.NewServiceClientFromConnectionString(srv.ConnectionString(), nil)
//
// The server is gone when the test ends.
package tabletest
