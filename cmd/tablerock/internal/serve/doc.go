// Package serve implements the command tablerock serve: the databases of all accounts, the
// listener of the protocol, and the admin listener.
//
// Run checks the command line before it changes anything, and that the address of the
// service is free. It opens the admin listener, the databases and then the listener of the
// service: a client that can connect gets a response. It prints the banner and is ready.
// SIGHUP makes it read the accounts file and the certificate again, and open the file of
// --debug again. After SIGINT or SIGTERM it stops accepting, waits at most 30 seconds for
// running requests, and closes the databases.
package serve
