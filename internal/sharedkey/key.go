package sharedkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"sync"
)

// SafeKeyBytes is the minimum length of a key that cannot be guessed.
const SafeKeyBytes = 32

const (
	minAccountLen = 3
	maxAccountLen = 24
	maxKeys       = 2
	signatureLen  = 44 // of 32 bytes in padded base64
)

// IsAccountName reports whether name is a valid account name: 3 to 24 lower-case
// letters and digits.
func IsAccountName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) >= minAccountLen && len(name) <= maxAccountLen
}

// Keys holds the keys of an account. It is safe for concurrent use.
type Keys struct {
	signers [maxKeys]*signer
	n       int // signers[n:] are dummies and match nothing
}

// NewKeys returns the one or two keys of an account. Each key is padded base64 of at
// least SafeKeyBytes bytes. Errors do not contain a key.
func NewKeys(keys ...string) (*Keys, error) { return newKeys(SafeKeyBytes, keys) }

// NewWeakKeys is like NewKeys but accepts keys of any length, which may be guessable.
func NewWeakKeys(keys ...string) (*Keys, error) { return newKeys(1, keys) }

func newKeys(minBytes int, keys []string) (*Keys, error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("%d keys: an account has one or two", len(keys))
	}
	k := &Keys{signers: dummyKeys.signers, n: len(keys)}
	for i, text := range keys {
		secret, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %d: not padded base64", i+1)
		}
		if len(secret) < minBytes {
			return nil, fmt.Errorf("key %d: %d bytes, at least %d are needed", i+1, len(secret), minBytes)
		}
		k.signers[i] = newSigner(secret)
	}
	return k, nil
}

// dummyKeys replaces the keys of an account that does not exist, and the second key of
// an account with one, so that the time of a refusal does not reveal either.
var dummyKeys = &Keys{signers: [maxKeys]*signer{newSigner(make([]byte, 64)), newSigner(make([]byte, 64))}}

// match reports whether one of the keys signed message. If none did, the time depends
// only on the length of message.
func (k *Keys) match(message []byte, signature *[sha256.Size]byte) bool {
	for i, s := range k.signers {
		if s.match(message, signature) && i < k.n {
			return true
		}
	}
	return false
}

// sign returns the signature of message by the first key, in base64.
func (k *Keys) sign(message []byte) string {
	m := k.signers[0].mac(message)
	defer k.signers[0].macs.Put(m)
	return base64.StdEncoding.EncodeToString(m.sum[:])
}

// signer computes signatures with one key. It pools the HMAC states, because preparing
// one takes as long as signing.
type signer struct {
	macs sync.Pool // of *mac
}

type mac struct {
	hash hash.Hash
	sum  [sha256.Size]byte
}

func newSigner(secret []byte) *signer {
	s := new(signer)
	s.macs.New = func() any { return &mac{hash: hmac.New(sha256.New, secret)} }
	return s
}

// mac returns a state with the MAC of message. Put it back into s.macs after use.
func (s *signer) mac(message []byte) *mac {
	m := s.macs.Get().(*mac)
	m.hash.Reset()
	m.hash.Write(message)
	m.hash.Sum(m.sum[:0])
	return m
}

func (s *signer) match(message []byte, signature *[sha256.Size]byte) bool {
	m := s.mac(message)
	defer s.macs.Put(m)
	return hmac.Equal(m.sum[:], signature[:])
}

var errSignature = errors.New("not base64 of 32 bytes")

// decodeSignature decodes the canonical base64 of a signature and rejects any other
// text. It does not read the content of a text that is too long.
func decodeSignature(text string) (sum [sha256.Size]byte, err error) {
	var from [signatureLen]byte
	var to [signatureLen / 4 * 3]byte
	if copy(from[:], text) != len(text) {
		return sum, errSignature
	}
	n, err := base64.StdEncoding.Strict().Decode(to[:], from[:len(text)])
	if err != nil || n != len(sum) {
		return sum, errSignature
	}
	copy(sum[:], to[:])
	return sum, nil
}
