package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/http"
	"time"
)

// signer computes the Authorization header of requests. It signs the date, a newline, and
// the account followed by the path as sent. Each connection has its own signer.
type signer struct {
	mac     hash.Hash
	account string

	second int64
	date   string

	// The last signature: workloads with a single path sign once a second.
	path string
	at   int64
	last []byte
}

func newSigner(t *target) *signer {
	return &signer{mac: hmac.New(sha256.New, t.key), account: t.account}
}

// tick sets the time of the requests that follow.
func (s *signer) tick(now time.Time) {
	if sec := now.Unix(); sec != s.second {
		s.second, s.date = sec, now.UTC().Format(http.TimeFormat)
	}
}

// authorization returns the header for a path, valid until the next call.
func (s *signer) authorization(path string) []byte {
	if s.at == s.second && s.path == path && s.last != nil {
		return s.last
	}
	s.mac.Reset()
	s.mac.Write([]byte(s.date + "\n/" + s.account + path))
	s.last = append(s.last[:0], "SharedKeyLite "+s.account+":"...)
	s.last = base64.StdEncoding.AppendEncode(s.last, s.mac.Sum(nil))
	s.path, s.at = path, s.second
	return s.last
}
