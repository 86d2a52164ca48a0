package sharedkey

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Credential signs requests and creates shared access signatures with a key of an
// account. It is safe for concurrent use.
type Credential struct {
	account string
	keys    *Keys
}

// NewCredential returns a Credential for an account and one of its keys in base64.
func NewCredential(account, key string) (*Credential, error) {
	keys, err := NewKeys(key)
	if err != nil {
		return nil, err
	}
	return &Credential{account, keys}, nil
}

// NewWeakCredential is NewCredential for keys that NewWeakKeys accepts.
func NewWeakCredential(account, key string) (*Credential, error) {
	keys, err := NewWeakKeys(key)
	if err != nil {
		return nil, err
	}
	return &Credential{account, keys}, nil
}

// SignRequest sets x-ms-date to now, and Authorization with SharedKey. Set Content-Type
// and Content-MD5 before the call, because they are signed. SignRequest signs the path
// of r.URL.EscapedPath, which is the path that net/http sends.
func (c *Credential) SignRequest(r *http.Request, now time.Time) error {
	r.Header.Set("X-Ms-Date", now.UTC().Format(http.TimeFormat))
	authorization, err := c.SharedKey(&Request{Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: r.Header})
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", authorization)
	return nil
}

// SharedKey returns the Authorization header for a request, which must have an
// x-ms-date or Date header. It uses Method, Path, RawQuery and Header.
func (c *Credential) SharedKey(r *Request) (string, error) { return c.authorization(r, false) }

// SharedKeyLite is like SharedKey for the scheme that does not sign the method and
// the content headers.
func (c *Credential) SharedKeyLite(r *Request) (string, error) { return c.authorization(r, true) }

func (c *Credential) authorization(r *Request, lite bool) (string, error) {
	p, ok := parseQuery(r.RawQuery)
	s, one := signedBy(r, p.comp(), lite)
	if !ok || !one {
		return "", errors.New("a signed header or parameter occurs twice or is not valid text")
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

// TableSAS describes a shared access signature for one table. Start and Expiry are
// times such as 2006-01-02T15:04:05Z. Empty fields are omitted.
type TableSAS struct {
	Version     string // sv; the default is 2019-02-02
	Table       string
	Permissions string // letters of raud, in that order
	Start       string
	Expiry      string
	Identifier  string // of the stored policy that holds the omitted fields
	IP          string // an address, or a range such as 10.0.0.1-10.0.0.9
	Protocol    string // "https" or "https,http"
	// The first and last key. A row requires its partition.
	StartPartition, StartRow, EndPartition, EndRow string
}

// AccountSAS describes a shared access signature for an account. Start and Expiry are
// times such as 2006-01-02T15:04:05Z. Empty fields are omitted.
type AccountSAS struct {
	Version       string // sv; the default is 2019-02-02
	Services      string // must include t for tables; the default is t
	ResourceTypes string // letters of sco
	Permissions   string // letters of rwdlacup
	Start         string
	Expiry        string
	IP            string // an address, or a range such as 10.0.0.1-10.0.0.9
	Protocol      string // "https" or "https,http"
}

const defaultVersion = "2019-02-02"

var errSAS = errors.New("invalid fields of a shared access signature")

// TableSAS returns the query parameters of s, without a question mark. It fails if no
// Verifier could accept them.
func (c *Credential) TableSAS(s TableSAS) (string, error) {
	return c.sas([fields]string{
		fieldVersion: s.Version, fieldTable: s.Table, fieldPermissions: s.Permissions, fieldStart: s.Start, fieldExpiry: s.Expiry,
		fieldIdentifier: s.Identifier, fieldIP: s.IP, fieldProtocol: s.Protocol,
		fieldStartPartition: s.StartPartition, fieldStartRow: s.StartRow, fieldEndPartition: s.EndPartition, fieldEndRow: s.EndRow,
	})
}

// AccountSAS returns the query parameters of s, without a question mark. It fails if
// no Verifier could accept them.
func (c *Credential) AccountSAS(s AccountSAS) (string, error) {
	return c.sas([fields]string{
		fieldVersion: s.Version, fieldServices: cmp.Or(s.Services, "t"), fieldResourceTypes: s.ResourceTypes, fieldPermissions: s.Permissions,
		fieldStart: s.Start, fieldExpiry: s.Expiry, fieldIP: s.IP, fieldProtocol: s.Protocol,
	})
}

// reason names a field that is not valid, if one alone is not.
func (p *parameters) reason() string {
	switch w := &p.values; {
	case !validDate(w[fieldStart]):
		return ": st is no time such as 2006-01-02T15:04:05Z"
	case !validDate(w[fieldExpiry]):
		return ": se is no time such as 2006-01-02T15:04:05Z"
	case !p.any(fieldExpiry, fieldIdentifier):
		return ": se is missing"
	case !p.any(fieldPermissions, fieldIdentifier):
		return ": sp is missing"
	case !validAddresses(w[fieldIP]):
		return ": sip is no address such as 10.0.0.1, and no range such as 10.0.0.1-10.0.0.9"
	case w[fieldProtocol] != "" && w[fieldProtocol] != "https" && w[fieldProtocol] != "https,http":
		return ": spr is https, or https,http"
	case p.present[fieldStartRow] && !p.present[fieldStartPartition]:
		return ": srk needs spk"
	case p.present[fieldEndRow] && !p.present[fieldEndPartition]:
		return ": erk needs epk"
	}
	return ""
}

// sas checks and signs the values that are not empty.
func (c *Credential) sas(values [fields]string) (string, error) {
	p := parameters{values: values}
	p.values[fieldVersion] = cmp.Or(values[fieldVersion], defaultVersion)
	for f, value := range p.values {
		if !plain(value) {
			return "", errSAS
		}
		p.present[f] = value != ""
	}
	if !p.wellFormed() {
		return "", fmt.Errorf("%w%s", errSAS, p.reason())
	}
	p.values[fieldSignature], p.present[fieldSignature] = c.keys.sign(p.appendTo(nil, c.account)), true
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
