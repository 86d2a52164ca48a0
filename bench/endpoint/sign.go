package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"net/http"
	"time"
)

// signer makes the Authorization of requests. The string that is signed is the
// date, a line end, and the account followed by the path as it is sent. A signer
// is used by one connection.
type signer struct {
	mac     hash.Hash
	account string

	second int64
	date   string

	// What was signed last: workloads that send one path sign once a second.
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

// authorization returns the value of the header for a path, valid until the next
// call.
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
