package documents

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a table's access policies.
const (
	maxPolicies      = 5
	maxPolicyIDUnits = 64 // UTF-16 code units
)

// Policy is a stored access policy of a table. A signature refers to it by its ID instead
// of stating times and permissions itself. Fields that are not given are zero.
type Policy struct {
	ID         string
	Start      time.Time // in UTC, in whole ticks of 100 ns
	Expiry     time.Time // likewise
	Permission string    // letters of raud
}

// ParsePolicies parses a client's document of the policies of a table. An empty document
// has none. The error is an *Error.
func ParsePolicies(doc []byte) ([]Policy, error) {
	doc = trimByteOrderMark(doc)
	if len(doc) == 0 {
		return nil, nil
	}
	var policies []Policy
	err := readDocument(doc, "SignedIdentifiers", func(r *reader) error {
		return r.list("SignedIdentifier", maxPolicies, func(r *reader) error {
			var p Policy
			if err := r.fields(p.fields()...); err != nil {
				return err
			}
			policies = append(policies, p)
			return nil
		})
	})
	if err == nil {
		err = checkPolicies(policies)
	}
	if err != nil {
		return nil, err
	}
	return policies, nil
}

func (p *Policy) fields() []field {
	return []field{
		// Space around an Id belongs to it: a signature must match it exactly.
		{name: "Id", read: func(r *reader) (err error) {
			p.ID, err = r.text()
			return err
		}},
		structField(
			"AccessPolicy",
			timeField("Start", &p.Start).orNone(),
			timeField("Expiry", &p.Expiry).orNone(),
			textField("Permission", func(s string) error {
				p.Permission = s
				return nil
			}).orNone(),
		).orNone(),
	}
}

// timeField is an element with a time, or empty.
func timeField(name string, to *time.Time) field {
	return textField(name, func(s string) error {
		if s == "" {
			return nil
		}
		t, ok := parseTime(s)
		if !ok {
			return refuse("%s is not an ISO 8601 time from 1601 to 9999", name)
		}
		*to = t
		return nil
	})
}

// checkPolicies checks the rules for policies. parseTime checks those for times.
func checkPolicies(policies []Policy) error {
	if len(policies) > maxPolicies {
		return refuse("%d policies, at most %d are accepted", len(policies), maxPolicies)
	}
	for i, p := range policies {
		switch {
		case p.ID == "":
			return refuse("a policy without an Id")
		case !utf8.ValidString(p.ID) || strings.ContainsFunc(p.ID, noXML):
			return refuse("an Id with characters that XML does not allow")
		case codeUnits(p.ID) > maxPolicyIDUnits:
			return refuse("an Id of more than %d characters", maxPolicyIDUnits)
		case slices.ContainsFunc(policies[:i], func(q Policy) bool { return q.ID == p.ID }):
			return refuse("two policies with the Id %q", p.ID)
		}
		for j, letter := range p.Permission {
			if !strings.ContainsRune("raud", letter) || strings.ContainsRune(p.Permission[:j], letter) {
				return refuse("a Permission with other letters than r, a, u and d, or with one twice")
			}
		}
	}
	return nil
}

// noXML reports whether XML does not allow c.
func noXML(c rune) bool {
	return c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0xfffe || c == 0xffff
}

// codeUnits returns the length of s in UTF-16.
func codeUnits(s string) int {
	n := 0
	for _, c := range s {
		n++
		if c > 0xffff {
			n++
		}
	}
	return n
}

// AppendPolicies appends the document that a client receives.
func AppendPolicies(dst []byte, policies []Policy) []byte {
	const root, one, access = "SignedIdentifiers", "SignedIdentifier", "AccessPolicy"
	dst = append(dst, declaration...)
	if len(policies) == 0 {
		return appendEmpty(dst, root)
	}
	dst = appendStart(dst, root)
	for _, p := range policies {
		dst = appendText(appendStart(dst, one), "Id", p.ID)
		if p != (Policy{ID: p.ID}) {
			dst = appendStart(dst, access)
			dst = appendTime(dst, "Start", p.Start)
			dst = appendTime(dst, "Expiry", p.Expiry)
			if p.Permission != "" {
				dst = appendText(dst, "Permission", p.Permission)
			}
			dst = appendEnd(dst, access)
		}
		dst = appendEnd(dst, one)
	}
	return appendEnd(dst, root)
}

// TimeLayout is the format of a policy's times, for time.Format.
const TimeLayout = "2006-01-02T15:04:05.0000000Z"

func appendTime(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = t.AppendFormat(appendStart(dst, name), TimeLayout)
	return appendEnd(dst, name)
}

// layouts are the formats of times from clients, the most frequent first. time.Parse
// accepts a fraction after the seconds. A time without a zone is in UTC.
var layouts = [...]string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02",
	"2006-01-02T15:04:05", "2006-01-02T15:04",
}

// The range of times is that of Edm.DateTime. It does not contain the year 1, so the zero
// time.Time means that no time is given.
var (
	minTime = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)
	endTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime parses a time, and truncates it to a tick.
func parseTime(s string) (time.Time, bool) {
	// Package time accepts a comma before the fraction, the service does not.
	if strings.Contains(s, ",") {
		return time.Time{}, false
	}
	for _, layout := range layouts {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		t = t.UTC().Truncate(tick)
		return t, !t.Before(minTime) && t.Before(endTime)
	}
	return time.Time{}, false
}

const tick = 100 * time.Nanosecond
