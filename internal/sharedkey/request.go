package sharedkey

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// Request is what of an HTTP request is signed or judged.
type Request struct {
	Method    string // as on the wire, of a tunnelled request POST
	Path      string // the escaped path exactly as sent, without the query
	RawQuery  string // the query exactly as sent, without the question mark
	Header    http.Header
	Account   string     // as routed, without -secondary
	Secondary bool       // the request came in on the -secondary endpoint
	TLS       bool       // the connection is encrypted
	Remote    netip.Addr // the peer of the connection, whatever a header claims
}

// header returns the only value of a header whose canonical name is given: ""
// if there is none, and false if there are several.
func (r *Request) header(canonical string) (string, bool) {
	switch values := r.Header[canonical]; len(values) {
	case 0:
		return "", true
	case 1:
		return values[0], true
	}
	return "", false
}

// field is a query parameter that decides about access.
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

// fieldNames are the parameters' names in a query, which are case-sensitive.
var fieldNames = [fields]string{
	fieldComp: "comp", fieldEndPartition: "epk", fieldEndRow: "erk", fieldExpiry: "se", fieldEncryptionScope: "ses",
	fieldIP: "sip", fieldIdentifier: "si", fieldPermissions: "sp", fieldProtocol: "spr", fieldResourceTypes: "srt",
	fieldServices: "ss", fieldSignature: "sig", fieldStart: "st", fieldStartPartition: "spk", fieldStartRow: "srk",
	fieldTable: "tn", fieldVersion: "sv",
}

func fieldOf(name string) field {
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

// parameters are the decoded values of a query's fields. What is signed is read
// from here and so is what is enforced, so that the two cannot differ.
type parameters struct {
	values  [fields]string
	present [fields]bool
}

// parseQuery decodes each field of a raw query once. It reports false if a field
// is there twice or its value is no text: badly escaped, invalid UTF-8, or with
// a control character, which could feign the end of a signed line. Other
// parameters are nobody's business here.
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
		f := fieldOf(name)
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

// isSAS reports whether the query tries to be a shared access signature.
func (p *parameters) isSAS() bool { return p.present[fieldSignature] || p.present[fieldVersion] }

// any reports whether one of the fields is present.
func (p *parameters) any(of ...field) bool {
	for _, f := range of {
		if p.present[f] {
			return true
		}
	}
	return false
}
