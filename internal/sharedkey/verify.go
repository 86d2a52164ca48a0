package sharedkey

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"time"
)

// Verifier authenticates requests. It is safe for concurrent use; do not change its
// fields after the first use.
type Verifier struct {
	// Keys returns the keys of an account, or nil if there is no such account.
	Keys func(account string) *Keys
	// Policies returns the stored access policies of a table. Verify calls it for a
	// shared access signature that names a policy, after checking the signature. The
	// error store.ErrTableNotFound refuses the request; Verify returns other errors.
	// If Policies is nil, there are no policies.
	Policies func(ctx context.Context, account, table string) ([]Policy, error)
	// OAuth accepts bearer tokens over TLS without checking their signatures.
	OAuth bool
	// Now returns the current time.
	Now func() time.Time
}

// Protocol versions that introduced a change.
const (
	versionChallenge = "2019-12-12" // a request without credentials or with an invalid token gets a challenge
	versionBearer    = "2017-11-09" // accepts bearer tokens
)

// Verify authenticates r and returns its permissions. The error is a *Refusal or an
// error of Policies. Verify does not retain r or its header.
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
		return Grant{}, anonymous(r, p.comp().value)
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

// anonymous returns the refusal of a request without credentials. comp is the query
// parameter of that name.
func anonymous(r *Request, comp string) *Refusal {
	switch {
	case !r.getsChallenge():
		return refusedAnonymous
	case comp == "properties" || comp == "stats":
		return serviceChallenge
	}
	return challenge
}

// getsChallenge reports whether the version of r is one with challenges.
func (r *Request) getsChallenge() bool {
	version, ok := r.header("X-Ms-Version")
	return ok && len(version) == len(versionChallenge) && version >= versionChallenge
}

// claim is a signature to check against the keys of an account.
type claim struct {
	keys      *Keys
	signature [sha256.Size]byte
}

// newClaim returns the claim of an account to a base64 signature. If there is no such
// account, the text is not a signature or plausible is false, the claim matches
// nothing and takes as long as a wrong signature.
func (v *Verifier) newClaim(account, signature string, plausible bool) claim {
	keys := v.Keys(account)
	sum, err := decodeSignature(signature)
	if keys == nil || err != nil || !plausible {
		keys = dummyKeys
	}
	return claim{keys, sum}
}

// message is a string to sign, in pooled memory.
type message struct{ text []byte }

const maxPooledMessageBytes = 8 << 10

var messages = sync.Pool{New: func() any { return &message{make([]byte, 0, 512)} }}

// release returns m to the pool. Do not use m afterwards.
func (m *message) release() {
	if cap(m.text) <= maxPooledMessageBytes {
		messages.Put(m)
	}
}
