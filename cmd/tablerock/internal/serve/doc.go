// Package serve is the command tablerock serve: databases of several accounts,
// the protocol's listener in front of them, and a listener for those who look
// after the server.
//
// Its life: the command line is understood and refused without a trace if it
// makes no sense; both listeners are taken, so that a busy port is known before a
// database is touched; the databases are opened; then the server answers, says
// where, and is ready. A signal makes it stop accepting, finish what runs for at
// most 30 seconds, and close the databases.
package serve
