package server

import (
	"bufio"
	"crypto/rand"
	"net/http"

	"github.com/google/uuid"
)

// newIDs returns a source of random bytes for GUIDs. It asks the system for many at a
// time.
func newIDs() *bufio.Reader { return bufio.NewReaderSize(rand.Reader, 16*len(uuid.UUID{})) }

// nextID returns a new GUID of version 4.
func nextID(random *bufio.Reader) string {
	return uuid.Must(uuid.NewRandomFromReader(random)).String() // crypto/rand never fails
}

// maxClientIDBytes is the length of the longest id that a client can give a request.
const maxClientIDBytes = 1024

// clientRequestID returns the id that the client gave the request, "" without an id or
// if it is not valid in a header.
func clientRequestID(header http.Header) string {
	given := header["X-Ms-Client-Request-Id"]
	if len(given) != 1 || len(given[0]) > maxClientIDBytes {
		return ""
	}
	for _, c := range []byte(given[0]) {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return given[0]
}
