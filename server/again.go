package server

import (
	"bufio"
	"crypto/rand"
	"strings"

	"github.com/google/uuid"
)

// joined is a text of several parts. The one of an earlier request mostly is that of
// this one, and serves again.
type joined string

// maxJoined is the most of a joined that is kept for later requests.
const maxJoined = 1 << 10

// join makes j the text of all parts.
func (j *joined) join(parts ...string) {
	rest, same := string(*j), true
	for _, p := range parts {
		if rest, same = strings.CutPrefix(rest, p); !same {
			break
		}
	}
	if !same || rest != "" {
		*j = joined(strings.Join(parts, ""))
	}
}

// kept returns j for a later request, or nothing if it is long.
func (j joined) kept() joined {
	if len(j) > maxJoined {
		return ""
	}
	return j
}

// newIDs returns random bytes for GUIDs. The system is asked for many at a time.
func newIDs() *bufio.Reader { return bufio.NewReaderSize(rand.Reader, 16*len(uuid.UUID{})) }

// nextID returns a new GUID of version 4.
func nextID(random *bufio.Reader) string {
	return uuid.Must(uuid.NewRandomFromReader(random)).String() // crypto/rand never fails
}
