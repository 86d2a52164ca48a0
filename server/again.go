package server

import (
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

// ids makes GUIDs at random. It asks the system for many at a time.
type ids struct {
	random [16 * len(uuid.UUID{})]byte
	left   int // bytes of random
}

// next returns the next GUID.
func (s *ids) next() string {
	if s.left == 0 {
		_, _ = rand.Read(s.random[:]) // never fails
		s.left = len(s.random)
	}
	s.left -= len(uuid.UUID{})
	id := uuid.UUID(s.random[s.left:][:len(uuid.UUID{})])
	id[6] = id[6]&0x0f | 0x40 // version 4: random
	id[8] = id[8]&0x3f | 0x80 // of RFC 9562
	return id.String()
}
