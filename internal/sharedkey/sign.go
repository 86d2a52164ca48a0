package sharedkey

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Credential signs as a client that has a key of an account. Any number of
// goroutines use it at the same time.
type Credential struct {
	account string
	keys    *Keys
}

// NewCredential takes the name of an account and one of its keys in base64.
func NewCredential(account, key string) (*Credential, error) {
	keys, err := NewKeys(key)
	if err != nil {
		return nil, err
	}
	return &Credential{account, keys}, nil
}

// SignRequest sets x-ms-date to now, and Authorization by SharedKey. Content-Type
// and Content-MD5 are signed and must be set before; the path is signed as
// r.URL.EscapedPath has it, which is how net/http sends it.
func (c *Credential) SignRequest(r *http.Request, now time.Time) error {
	r.Header.Set("X-Ms-Date", now.UTC().Format(http.TimeFormat))
	authorization, err := c.SharedKey(&Request{Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: r.Header})
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", authorization)
	return nil
}

// SharedKey returns the Authorization header for a request that has a date in
// x-ms-date or Date. It reads Method, Path, RawQuery and Header.
func (c *Credential) SharedKey(r *Request) (string, error) { return c.authorization(r, false) }

// SharedKeyLite is SharedKey for the scheme that leaves verb and content out.
func (c *Credential) SharedKeyLite(r *Request) (string, error) { return c.authorization(r, true) }

func (c *Credential) authorization(r *Request, lite bool) (string, error) {
	p, ok := parseQuery(r.RawQuery)
	s, one := signedBy(r, p.comp(), lite)
	if !ok || !one {
		return "", errors.New("a signed header or parameter is there twice, or no text")
	}
	date := r.Header.Get("X-Ms-Date")
	if date == "" {
		date = r.Header.Get("Date")
	}
	s.account, s.path = c.account, r.Path
	if s.path == "" {
		s.path = "/"
	}
	scheme := schemeFull
	if lite {
		scheme = schemeLite
	}
	return scheme + " " + c.account + ":" + c.keys.sign(s.appendTo(nil, date)), nil
}

// TableSAS is a shared access signature for one table. Start and Expiry are times
// as in 2006-01-02T15:04:05Z; what is empty is left out.
type TableSAS struct {
	Version     string // sv, of which the default is 2019-02-02
	Table       string
	Permissions string // some of raud, in that order
	Start       string
	Expiry      string
	Identifier  string // of a stored policy, which has what is left out here
	IP          string // an address, or the first and the last as in 10.0.0.1-10.0.0.9
	Protocol    string // "https" or "https,http"
	// The first and the last key. A row needs its partition.
	StartPartition, StartRow, EndPartition, EndRow string
}

// AccountSAS is a shared access signature for an account. Start and Expiry are
// times as in 2006-01-02T15:04:05Z; what is empty is left out.
type AccountSAS struct {
	Version       string // sv, of which the default is 2019-02-02
	Services      string // with a t, or it opens no table; the default is t
	ResourceTypes string // some of sco
	Permissions   string // some of rwdlacup
	Start         string
	Expiry        string
	IP            string // an address, or the first and the last as in 10.0.0.1-10.0.0.9
	Protocol      string // "https" or "https,http"
}

const defaultVersion = "2019-02-02"

var errSAS = errors.New("no shared access signature can be made of this")

// TableSAS returns the query that s stands for, without a question mark. It
// fails if no Verifier could accept it.
func (c *Credential) TableSAS(s TableSAS) (string, error) {
	p := new(parameters)
	p.set(fieldTable, s.Table)
	p.set(fieldIdentifier, s.Identifier)
	p.set(fieldStartPartition, s.StartPartition)
	p.set(fieldStartRow, s.StartRow)
	p.set(fieldEndPartition, s.EndPartition)
	p.set(fieldEndRow, s.EndRow)
	return c.sas(p, s.Version, s.Permissions, s.Start, s.Expiry, s.IP, s.Protocol)
}

// AccountSAS returns the query that s stands for, without a question mark. It
// fails if no Verifier could accept it.
func (c *Credential) AccountSAS(s AccountSAS) (string, error) {
	p := new(parameters)
	if s.Services == "" {
		s.Services = "t"
	}
	p.set(fieldServices, s.Services)
	p.set(fieldResourceTypes, s.ResourceTypes)
	return c.sas(p, s.Version, s.Permissions, s.Start, s.Expiry, s.IP, s.Protocol)
}

// set gives a field a value that is not empty.
func (p *parameters) set(f field, value string) { p.values[f], p.present[f] = value, value != "" }

// sas completes, checks and signs p.
func (c *Credential) sas(p *parameters, version, permissions, start, expiry, ip, protocol string) (string, error) {
	if version == "" {
		version = defaultVersion
	}
	p.set(fieldVersion, version)
	p.set(fieldPermissions, permissions)
	p.set(fieldStart, start)
	p.set(fieldExpiry, expiry)
	p.set(fieldIP, ip)
	p.set(fieldProtocol, protocol)
	for _, value := range p.values {
		if !plain(value) {
			return "", errSAS
		}
	}
	if !p.wellFormed() {
		return "", errSAS
	}
	p.set(fieldSignature, c.keys.sign(p.appendTo(nil, c.account)))
	var query strings.Builder
	for f, value := range p.values {
		if !p.present[f] {
			continue
		}
		if query.Len() > 0 {
			query.WriteByte('&')
		}
		query.WriteString(fieldNames[f] + "=" + url.QueryEscape(value))
	}
	return query.String(), nil
}
