// Package plant breaks a database on purpose, from outside: file systems and
// stores that do one thing wrong. A test programme that does not catch them
// proves nothing.
package plant
