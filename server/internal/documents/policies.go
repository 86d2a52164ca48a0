package documents

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of a table's access policies.
const (
	MaxPolicies      = 5
	MaxPolicyIDUnits = 64 // UTF-16 code units
)

// Policy is one stored access policy of a table: what a signature that names it
// need not say itself. Of a part that is not given, the value is zero.
type Policy struct {
	ID         string
	Start      time.Time // in UTC, in whole ticks of 100 ns
	Expiry     time.Time // likewise
	Permission string    // letters of raud
}

// ParsePolicies reads what a client sets as a table's policies; nothing at all
// says that there are none. The error is an *Error.
func ParsePolicies(doc []byte) ([]Policy, error) {
	doc = withoutMark(doc)
	if len(doc) == 0 {
		return nil, nil
	}
	var policies []Policy
	err := readDocument(doc, "SignedIdentifiers", func(r *reader) error {
		return r.list("SignedIdentifier", MaxPolicies, func(r *reader) error {
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
		// Space around an Id is part of it: a signature names it exactly.
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

// timeField is an element that says a time, or nothing.
func timeField(name string, to *time.Time) field {
	return textField(name, func(s string) error {
		if s == "" {
			return nil
		}
		t, ok := parseTime(s)
		if !ok {
			return refuse("%s is no time of ISO 8601 from 1601 to 9999", name)
		}
		*to = t
		return nil
	})
}

// checkPolicies holds policies against their rules, but for those of times.
func checkPolicies(policies []Policy) error {
	if len(policies) > MaxPolicies {
		return refuse("%d policies, and there are at most %d", len(policies), MaxPolicies)
	}
	for i, p := range policies {
		switch {
		case p.ID == "":
			return refuse("a policy without an Id")
		case !utf8.ValidString(p.ID) || strings.ContainsFunc(p.ID, noXML):
			return refuse("an Id of characters that XML does not have")
		case codeUnits(p.ID) > MaxPolicyIDUnits:
			return refuse("an Id of more than %d characters", MaxPolicyIDUnits)
		case slices.ContainsFunc(policies[:i], func(q Policy) bool { return q.ID == p.ID }):
			return refuse("the Id %q stands twice", p.ID)
		}
		for j, letter := range p.Permission {
			if !strings.ContainsRune("raud", letter) || strings.ContainsRune(p.Permission[:j], letter) {
				return refuse("a Permission that is not letters of raud, each once")
			}
		}
	}
	return nil
}

// noXML reports whether c cannot stand in a document.
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

// AppendPolicies appends the document that a client is answered.
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

// TimeLayout is the form of a policy's times, for package time.
const TimeLayout = "2006-01-02T15:04:05.0000000Z"

func appendTime(dst []byte, name string, t time.Time) []byte {
	if t.IsZero() {
		return dst
	}
	dst = t.AppendFormat(appendStart(dst, name), TimeLayout)
	return appendEnd(dst, name)
}

// layouts are the forms of a time that clients send, in the order of how often;
// each takes a fraction of a second behind its seconds. Without a zone, it is UTC.
var layouts = [...]string{
	"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02",
	"2006-01-02T15:04:05", "2006-01-02T15:04",
}

// The range of times is that of Edm.DateTime. The year 1 is none of it, so the
// zero time stands for none.
var (
	minTime = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)
	endTime = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
)

// parseTime reads a time, and cuts it down to a whole tick.
func parseTime(s string) (time.Time, bool) {
	// A fraction may have a comma for package time; for the service it may not.
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
