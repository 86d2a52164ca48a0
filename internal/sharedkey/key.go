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

// SafeKeyBytes is the length from which a key cannot be guessed.
const SafeKeyBytes = 32

const (
	minAccountLen = 3
	maxAccountLen = 24
	maxKeys       = 2
	signatureLen  = 44 // of 32 bytes in padded base64
)

// IsAccountName reports whether an account can have the name: 3 to 24 lower-case
// letters and digits.
func IsAccountName(name string) bool {
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return len(name) >= minAccountLen && len(name) <= maxAccountLen
}

// Keys are the keys of an account, ready for use by any number of goroutines at
// the same time.
type Keys struct {
	signers [maxKeys]*signer
	n       int // signers from here on belong to nobody and match nothing
}

// NewKeys prepares the one or two keys of an account, which are padded base64 of
// at least SafeKeyBytes. Its errors do not show a key.
func NewKeys(keys ...string) (*Keys, error) { return newKeys(SafeKeyBytes, keys) }

// NewWeakKeys is NewKeys for keys of any length, which may be guessed.
func NewWeakKeys(keys ...string) (*Keys, error) { return newKeys(1, keys) }

func newKeys(least int, keys []string) (*Keys, error) {
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("%d keys: an account has one or two", len(keys))
	}
	k := &Keys{signers: nobody.signers, n: len(keys)}
	for i, text := range keys {
		secret, err := base64.StdEncoding.Strict().DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("key %d: not padded base64", i+1)
		}
		if len(secret) < least {
			return nil, fmt.Errorf("key %d: %d bytes, at least %d are needed", i+1, len(secret), least)
		}
		k.signers[i] = newSigner(secret)
	}
	return k, nil
}

// nobody stands for the keys of accounts that do not exist, and for the key that
// an account lacks, so that neither shows in the time that a refusal takes.
var nobody = &Keys{signers: [maxKeys]*signer{newSigner(make([]byte, 64)), newSigner(make([]byte, 64))}}

// match reports whether one of the keys signed message. The time until it says
// no depends on the length of message alone.
func (k *Keys) match(message []byte, signature *[sha256.Size]byte) bool {
	for i, s := range k.signers {
		if s.match(message, signature) && i < k.n {
			return true
		}
	}
	return false
}

// sign returns the signature by the first key in base64.
func (k *Keys) sign(message []byte) string {
	m := k.signers[0].mac(message)
	defer k.signers[0].macs.Put(m)
	return base64.StdEncoding.EncodeToString(m.sum[:])
}

// signer holds states of one key that were used before, since preparing one
// costs as much as signing.
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

// mac returns a state with the sum of message, which goes back into s.macs.
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

var errSignature = errors.New("not the base64 of 32 bytes")

// decodeSignature takes the one way to write a signature, and of any other text
// no more than its length.
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
