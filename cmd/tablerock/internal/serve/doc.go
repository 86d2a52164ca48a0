// Package serve implements the command tablerock serve: the databases of all accounts, the
// listener of the protocol, and the admin listener.
//
// Run checks the command line before it changes anything. It opens both listeners before
// the databases, so that a busy port leaves the databases untouched. Then it opens the
// databases, prints the banner and is ready. After a signal it stops accepting, waits at
// most 30 seconds for running requests, and closes the databases.
package serve
