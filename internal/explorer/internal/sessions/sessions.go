// Package sessions keeps the logins of browsers, and the links that log in once. It has hashes
// of the tokens only.
package sessions

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

const (
	// Lifetime is the time after which a session ends.
	Lifetime = 12 * time.Hour

	linkTime = 10 * time.Minute
	maxLinks = 100
	// maxSame limits the sessions of one kind and account, and maxAll limits all. One ends
	// for another one.
	maxSame = 100
	maxAll  = 1000
)

// Kind is how a session began. If there are too many sessions, those of the smallest Kind end
// first: many people can have a signature, few have a key, and only the owner gets a link.
type Kind int

// The kinds of sessions.
const (
	BySignature Kind = iota
	ByKey
	ByLink
)

// Session is the login of a browser. Its fields do not change, except Grant, which belongs to
// one copy for each request.
type Session struct {
	Kind    Kind
	Account string // "" for the owner
	Key     *sharedkey.Credential
	SAS     string
	Table   string // the only one of SAS, "" for all
	Grant   sharedkey.Grant

	// Begin sets the fields below.

	ID    string // no secret
	CSRF  string
	Begun time.Time
	Ctx   context.Context // ends with the session

	end  context.CancelFunc
	hash hash
}

// hash is that of a token.
type hash [sha256.Size]byte

func hashOf(token string) hash { return sha256.Sum256([]byte(token)) }

// Set is a set of sessions and links. It is safe for concurrent use.
type Set struct {
	now func() time.Time
	ctx context.Context // of all sessions
	end context.CancelFunc

	mu    sync.Mutex
	list  map[hash]*Session  // +checklocks:mu
	links map[hash]time.Time // their ends; +checklocks:mu
}

// New returns an empty Set.
func New(now func() time.Time) *Set {
	s := &Set{now: now, list: map[hash]*Session{}, links: map[hash]time.Time{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// Close ends all sessions.
func (s *Set) Close() { s.end() }

// NewSecret returns 256 random bits as text.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// NewLink returns the token of a link that works once, within ten minutes.
func (s *Set) NewLink() string {
	token := NewSecret()
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, end := range s.links {
		if len(s.links) >= maxLinks || s.now().After(end) {
			delete(s.links, h)
		}
	}
	s.links[hashOf(token)] = s.now().Add(linkTime)
	return token
}

// UseLink reports whether a token is that of a link, and ends the link.
func (s *Set) UseLink(token string) bool {
	h := hashOf(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.links[h]
	delete(s.links, h)
	return ok && s.now().Before(end)
}

// Begin begins a session and returns its token.
func (s *Set) Begin(one *Session) string {
	token := NewSecret()
	one.ID, one.CSRF, one.Begun, one.hash = NewSecret(), NewSecret(), s.now(), hashOf(token)
	one.Ctx, one.end = context.WithTimeout(s.ctx, Lifetime)
	s.mu.Lock()
	defer s.mu.Unlock()
	var all, same []*Session
	for _, other := range s.list {
		if s.now().Sub(other.Begun) > Lifetime {
			s.endLocked(other)
			continue
		}
		all = append(all, other)
		if other.Account == one.Account && other.Kind == one.Kind {
			same = append(same, other)
		}
	}
	if len(same) >= maxSame {
		s.endLocked(first(same))
	} else if len(all) >= maxAll {
		s.endLocked(first(all))
	}
	s.list[one.hash] = one
	return token
}

// first returns the session that ends first for another one.
func first(list []*Session) *Session {
	return slices.MinFunc(list, func(a, b *Session) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), a.Begun.Compare(b.Begun)) })
}

// endLocked ends a session.
//
// +checklocks:s.mu
func (s *Set) endLocked(one *Session) {
	delete(s.list, one.hash)
	one.end()
}

// Find returns a copy of the session of a token, nil if there is none.
func (s *Set) Find(token string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.list[hashOf(token)]
	if one == nil || one.Ctx.Err() != nil || s.now().Sub(one.Begun) > Lifetime {
		return nil
	}
	found := *one
	return &found
}

// End ends the session of a token.
func (s *Set) End(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.list[hashOf(token)]; one != nil {
		s.endLocked(one)
	}
}
