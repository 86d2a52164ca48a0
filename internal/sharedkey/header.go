package sharedkey

import (
	"net/http"
	"strings"
	"time"
)

const (
	schemeFull   = "SharedKey"
	schemeLite   = "SharedKeyLite"
	schemeBearer = "Bearer"

	secondarySuffix = "-secondary"
	maxSkew         = 15 * time.Minute
)

// signed holds the values that an Authorization header signs, except the date.
type signed struct {
	lite                        bool
	method, digest, contentType string
	account, path               string
	comp                        parameter
}

// parameter is an optional value.
type parameter struct {
	value   string
	present bool
}

func (p *parameters) comp() parameter {
	return parameter{p.values[fieldComp], p.present[fieldComp]}
}

// appendTo appends the string to sign for a date:
//
//	SharedKey      method LF Content-MD5 LF Content-Type LF date LF resource
//	SharedKeyLite  date LF resource
//
// where resource is "/", the account, the escaped path, and "?comp=" with its value if
// the query has comp. With path-style URLs the path contains the account again.
func (s *signed) appendTo(dst []byte, date string) []byte {
	if !s.lite {
		dst = append(append(dst, s.method...), '\n')
		dst = append(append(dst, s.digest...), '\n')
		dst = append(append(dst, s.contentType...), '\n')
	}
	dst = append(append(dst, date...), '\n')
	dst = append(append(dst, '/'), s.account...)
	dst = append(dst, s.path...)
	if s.comp.present {
		dst = append(append(dst, "?comp="...), s.comp.value...)
	}
	return dst
}

// verifyHeader verifies the credentials of SharedKey or SharedKeyLite, which are an
// account, a colon and a signature. It tries each valid date with each form of the
// path, at most eight combinations, and two keys each.
func (v *Verifier) verifyHeader(r *Request, comp parameter, lite bool, credentials string) (Grant, error) {
	s, ok := signedBy(r, comp, lite)
	if !ok {
		return Grant{}, refusedAuthentication
	}
	dates, err := freshDates(r, v.Now())
	if err != nil {
		return Grant{}, err
	}
	if dates == [2]string{} {
		return Grant{}, refusedClock
	}
	account, signature, _ := strings.Cut(credentials, ":")
	c := v.newClaim(r.Account, signature, account == r.Account)
	m := messages.Get().(*message)
	defer m.release()
	// Nearly every client signs the path as sent. Compute the other forms only if that
	// does not match.
	paths, all := [4]string{sentPath(r)}, false
	for _, date := range dates {
		if date == "" {
			continue
		}
		for i := range paths {
			if i == 1 && !all {
				paths, all = pathForms(r), true
			}
			if paths[i] == "" {
				continue
			}
			s.path = paths[i]
			m.text = s.appendTo(m.text[:0], date)
			if c.keys.match(m.text, &c.signature) {
				return Grant{kind: byKey}, nil
			}
		}
	}
	return Grant{}, refusedAuthentication
}

// signedBy collects the signed values of r, except date and path. It reports false if
// a signed header has several values.
func signedBy(r *Request, comp parameter, lite bool) (signed, bool) {
	s := signed{lite: lite, method: r.Method, account: r.Account, comp: comp}
	if lite {
		return s, true
	}
	var one, both bool
	s.digest, one = r.header("Content-Md5")
	s.contentType, both = r.header("Content-Type")
	return s, one && both
}

// freshDates returns the values of x-ms-date and Date. It returns "" for a date that
// differs from now by more than maxSkew, and for a Date that is the same as x-ms-date.
// A signature is only valid for the date that it signs, not for the other one.
func freshDates(r *Request, now time.Time) (dates [2]string, err error) {
	own, one := r.header("X-Ms-Date")
	general, both := r.header("Date")
	if !one || !both {
		return dates, refusedAuthentication
	}
	for i, text := range [...]string{own, general} {
		if text == "" || i > 0 && text == own {
			continue
		}
		date, err := parseDate(text)
		if err != nil && i == 0 {
			return dates, refusedDate
		}
		if err == nil && date.Sub(now).Abs() <= maxSkew {
			dates[i] = text
		}
	}
	return dates, nil
}

// sentPath returns the path as sent.
func sentPath(r *Request) string {
	if r.Path == "" {
		return "/"
	}
	return r.Path
}

// pathForms returns the forms of the path that a client may have signed, "" for
// duplicates: as sent; on the secondary endpoint without the suffix of the account, or
// without the first account if the path contains it twice; and both with normalized
// escapes, because a proxy may have changed them.
func pathForms(r *Request) (paths [4]string) {
	paths[0] = sentPath(r)
	if r.Secondary {
		if rest, ok := strings.CutPrefix(r.Path, "/"+r.Account+secondarySuffix); ok && (rest == "" || rest[0] == '/') {
			paths[1] = r.Path[:1+len(r.Account)] + rest
			if strings.HasPrefix(rest, "/"+r.Account+"/") {
				paths[1] = rest
			}
		}
	}
	for i, path := range paths[:2] {
		if normal := normalPath(path); normal != path {
			paths[2+i] = normal
		}
	}
	return paths
}

// parseDate parses an RFC 1123 date in GMT.
func parseDate(text string) (time.Time, error) {
	if len(text) != len(http.TimeFormat) {
		return time.Time{}, errDate
	}
	return time.Parse(http.TimeFormat, text)
}
