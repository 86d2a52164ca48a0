package sharedkey

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"
)

// Verifier finds out by whom requests were sent. Its fields do not change while
// it is in use; any number of goroutines use it at the same time.
type Verifier struct {
	// Keys returns the keys of an account, nil if there is no such account.
	Keys func(account string) *Keys
	// Policies returns the stored access policies of a table, for signatures that
	// name one. It is asked only about a signature that is right. An error that is
	// store.ErrTableNotFound refuses the request, and Verify returns any other.
	// Nil is for no policies.
	Policies func(ctx context.Context, account, table string) ([]Policy, error)
	// OAuth accepts bearer tokens over TLS, without a check of their signature.
	OAuth bool
	// Now tells the time.
	Now func() time.Time
}

// Versions of the protocol from which something differs.
const (
	versionChallenge = "2019-12-12" // a request without credentials is told where to get some
	versionBearer    = "2017-11-09" // bearer tokens are understood
)

// Verify finds out by whom r was sent. Its error is a *Refusal, or what Policies
// failed with. It reads no more of r than it says and keeps none of its maps.
func (v *Verifier) Verify(ctx context.Context, r *Request) (Grant, error) {
	p, ok := parseQuery(r.RawQuery)
	if !ok {
		return Grant{}, refusedAuthentication
	}
	authorization, ok := r.header("Authorization")
	if !ok || authorization != "" && p.isSAS() {
		return Grant{}, refusedAuthentication
	}
	switch {
	case p.isSAS():
		return v.verifySAS(ctx, r, &p)
	case authorization == "":
		return Grant{}, anonymous(r)
	}
	scheme, credentials, _ := strings.Cut(authorization, " ")
	switch scheme {
	case schemeFull, schemeLite:
		return v.verifyHeader(r, p.comp(), scheme == schemeLite, credentials)
	case schemeBearer:
		return v.verifyBearer(r, credentials)
	}
	if strings.EqualFold(scheme, schemeFull) || strings.EqualFold(scheme, schemeLite) {
		return Grant{}, refusedAuthentication
	}
	return Grant{}, refusedScheme
}

// anonymous is the refusal of a request without credentials.
func anonymous(r *Request) *Refusal {
	if version, ok := r.header("X-Ms-Version"); ok && len(version) == len(versionChallenge) && version >= versionChallenge {
		return challenge
	}
	return refusedAnonymous
}

// claim is a signature that somebody says is an account's.
type claim struct {
	keys      *Keys
	signature [sha256.Size]byte
}

// claimOf returns the claim of account to a signature in base64. If there is no
// such account, the text is no signature or plausible is false, nothing will
// match the claim, in the time that a wrong signature takes.
func (v *Verifier) claimOf(account, signature string, plausible bool) claim {
	keys := v.Keys(account)
	sum, err := decodeSignature(signature)
	if keys == nil || err != nil || !plausible {
		keys = nobody
	}
	return claim{keys, sum}
}

// message is a string to sign, in memory that is used again.
type message struct{ text []byte }

const keptMessageBytes = 8 << 10

var messages = sync.Pool{New: func() any { return &message{make([]byte, 0, 512)} }}

// release ends the use of m.
func (m *message) release() {
	if cap(m.text) <= keptMessageBytes {
		messages.Put(m)
	}
}
