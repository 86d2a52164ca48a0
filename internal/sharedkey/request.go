package sharedkey

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Request holds the values of an HTTP request that authorization depends on.
type Request struct {
	Method    string // as sent; POST for a tunneled request
	Path      string // escaped, exactly as sent, without the query
	RawQuery  string // exactly as sent, without the question mark
	Header    http.Header
	Account   string     // as routed, without -secondary
	Secondary bool       // sent to the -secondary endpoint
	TLS       bool       // the connection is encrypted
	Remote    netip.Addr // the peer of the connection, regardless of headers
}

// header returns the value of the header with the canonical name. It returns "" if
// there is none, and false if there are several values.
func (r *Request) header(canonical string) (string, bool) {
	switch values := r.Header[canonical]; len(values) {
	case 0:
		return "", true
	case 1:
		return values[0], true
	}
	return "", false
}

// field is a query parameter that affects authorization.
type field uint8

const (
	fieldNone field = iota
	fieldComp
	fieldEndPartition
	fieldEndRow
	fieldExpiry
	fieldEncryptionScope
	fieldIP
	fieldIdentifier
	fieldPermissions
	fieldProtocol
	fieldResourceTypes
	fieldServices
	fieldSignature
	fieldStart
	fieldStartPartition
	fieldStartRow
	fieldTable
	fieldVersion
	fields
)

// fieldNames holds the case-sensitive names of the parameters.
var fieldNames = [fields]string{
	fieldComp: "comp", fieldEndPartition: "epk", fieldEndRow: "erk", fieldExpiry: "se", fieldEncryptionScope: "ses",
	fieldIP: "sip", fieldIdentifier: "si", fieldPermissions: "sp", fieldProtocol: "spr", fieldResourceTypes: "srt",
	fieldServices: "ss", fieldSignature: "sig", fieldStart: "st", fieldStartPartition: "spk", fieldStartRow: "srk",
	fieldTable: "tn", fieldVersion: "sv",
}

func lookupField(name string) field {
	if len(name) < 2 || len(name) > 4 {
		return fieldNone
	}
	for f := fieldComp; f < fields; f++ {
		if fieldNames[f] == name {
			return f
		}
	}
	return fieldNone
}

// parameters holds the decoded fields of a query. The signature check and the
// enforcement both use these values, so that they cannot differ.
type parameters struct {
	values  [fields]string
	present [fields]bool
}

// parseQuery decodes the fields of a raw query. It reports false if a field occurs
// twice or has an invalid value: a malformed escape, invalid UTF-8, or a control
// character, which could imitate the end of a signed line. It ignores other
// parameters.
func parseQuery(raw string) (p parameters, ok bool) {
	for raw != "" {
		var pair string
		pair, raw, _ = strings.Cut(raw, "&")
		name, value, _ := strings.Cut(pair, "=")
		if strings.ContainsAny(name, "%+") {
			var err error
			if name, err = url.QueryUnescape(name); err != nil {
				continue
			}
		}
		f := lookupField(name)
		if f == fieldNone {
			continue
		}
		value, err := url.QueryUnescape(value)
		if err != nil || p.present[f] || !plain(value) {
			return p, false
		}
		p.values[f], p.present[f] = value, true
	}
	return p, true
}

// isSAS reports whether the query has fields of a shared access signature.
func (p *parameters) isSAS() bool { return p.present[fieldSignature] || p.present[fieldVersion] }

// empty reports whether f is present without a value.
func (p *parameters) empty(f field) bool { return p.present[f] && p.values[f] == "" }

// any reports whether one of the fields is present.
func (p *parameters) any(of ...field) bool {
	for _, f := range of {
		if p.present[f] {
			return true
		}
	}
	return false
}
