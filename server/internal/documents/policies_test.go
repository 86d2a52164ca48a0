package documents

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func day(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }

// acl returns a client's document with these identifiers.
func acl(identifiers ...string) string {
	var b strings.Builder
	b.WriteString("<?xml version='1.0' encoding='utf-8'?>\n<SignedIdentifiers>")
	for _, s := range identifiers {
		b.WriteString("<SignedIdentifier>" + s + "</SignedIdentifier>")
	}
	return b.String() + "</SignedIdentifiers>"
}

func TestPolicies(t *testing.T) {
	policy := func(s string) string { return acl("<Id>a</Id><AccessPolicy>" + s + "</AccessPolicy>") }
	for _, c := range []struct {
		name, doc string
		want      []Policy
		out       string // after the declaration
	}{
		{"nothing", "", nil, "<SignedIdentifiers />"},
		{"byte order mark alone", "\ufeff", nil, "<SignedIdentifiers />"},
		{"none", acl(), nil, "<SignedIdentifiers />"},
		{
			"all elements",
			acl("<Id>p1</Id><AccessPolicy><Start>2021-06-08T02:05:09Z</Start><Expiry>2021-06-08T03:10:09.5Z</Expiry><Permission>raud</Permission></AccessPolicy>"),
			[]Policy{{"p1", time.Date(2021, 6, 8, 2, 5, 9, 0, time.UTC), time.Date(2021, 6, 8, 3, 10, 9, 5e8, time.UTC), "raud"}},
			"<SignedIdentifiers><SignedIdentifier><Id>p1</Id><AccessPolicy><Start>2021-06-08T02:05:09.0000000Z</Start>" +
				"<Expiry>2021-06-08T03:10:09.5000000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
		},
		{
			"elements in another order",
			acl("\n <AccessPolicy> <Permission> dr </Permission><Start>2011-10-11</Start> </AccessPolicy>\n<Id>p</Id>"),
			[]Policy{{ID: "p", Start: day(2011, 10, 11), Permission: "dr"}},
			"<SignedIdentifiers><SignedIdentifier><Id>p</Id><AccessPolicy><Start>2011-10-11T00:00:00.0000000Z</Start>" +
				"<Permission>dr</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
		},
		{
			"no policy, an empty one, one of empty elements",
			acl("<Id>a</Id>", "<Id>b</Id><AccessPolicy />", "<Id>c</Id><AccessPolicy><Start/><Expiry></Expiry><Permission> </Permission></AccessPolicy>"),
			[]Policy{{ID: "a"}, {ID: "b"}, {ID: "c"}},
			"<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>b</Id></SignedIdentifier>" +
				"<SignedIdentifier><Id>c</Id></SignedIdentifier></SignedIdentifiers>",
		},
		{
			"an Id with all that is escaped, and space",
			acl("<Id> &lt;a&gt; &amp;<![CDATA[<&>]]>\u00e9&#x1F600;&#13;\"' </Id>"),
			[]Policy{{ID: " <a> &<&>\u00e9\U0001f600\r\"' "}},
			"<SignedIdentifiers><SignedIdentifier><Id> &lt;a&gt; &amp;&lt;&amp;&gt;\u00e9\U0001f600&#xD;\"' </Id></SignedIdentifier></SignedIdentifiers>",
		},
		{
			"Ids that differ in case", acl("<Id>a</Id>", "<Id>A</Id>"),
			[]Policy{{ID: "a"}, {ID: "A"}},
			"<SignedIdentifiers><SignedIdentifier><Id>a</Id></SignedIdentifier><SignedIdentifier><Id>A</Id></SignedIdentifier></SignedIdentifiers>",
		},
		{
			"first and last time", policy("<Start>1601-01-01T00:00:00Z</Start><Expiry>9999-12-31T23:59:59.9999999Z</Expiry>"),
			[]Policy{{ID: "a", Start: day(1601, 1, 1), Expiry: time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC)}},
			"<SignedIdentifiers><SignedIdentifier><Id>a</Id><AccessPolicy><Start>1601-01-01T00:00:00.0000000Z</Start>" +
				"<Expiry>9999-12-31T23:59:59.9999999Z</Expiry></AccessPolicy></SignedIdentifier></SignedIdentifiers>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := ParsePolicies([]byte(c.doc))
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Fatalf("ParsePolicies(%q):\ngot  %v, %v\nwant %v", c.doc, got, err, c.want)
			}
			if out := string(AppendPolicies(nil, got)); out != prologue+c.out {
				t.Errorf("AppendPolicies(%v):\ngot  %q\nwant %q", got, out, prologue+c.out)
			}
		})
	}
}

func TestPoliciesRefused(t *testing.T) {
	policy := func(s string) string { return acl("<Id>a</Id><AccessPolicy>" + s + "</AccessPolicy>") }
	for _, c := range []struct{ name, doc string }{
		{"six", acl("<Id>1</Id>", "<Id>2</Id>", "<Id>3</Id>", "<Id>4</Id>", "<Id>5</Id>", "<Id>6</Id>")},
		{"no Id", acl("<AccessPolicy />")},
		{"nothing", acl("")},
		{"empty Id", acl("<Id />")},
		{"long Id", acl("<Id>" + strings.Repeat("x", maxPolicyIDUnits+1) + "</Id>")},
		{"Id of 65 code units", acl("<Id>" + strings.Repeat("x", maxPolicyIDUnits-1) + "\U0001f600</Id>")},
		{"Id twice", acl("<Id>a</Id><Id>b</Id>")},
		{"the same Id", acl("<Id>a</Id>", "<Id>b</Id>", "<Id>a</Id>")},
		{"Id of elements", acl("<Id><b>a</b></Id>")},
		{"Id with a character that XML does not allow", acl("<Id>&#1;</Id>")},
		{"unknown element", acl("<Id>a</Id><Name>b</Name>")},
		{"Id in another case", acl("<ID>a</ID>")},
		{"element of a namespace", acl(`<Id xmlns="x">a</Id>`)},
		{"two policies", acl("<Id>a</Id><AccessPolicy /><AccessPolicy />")},
		{"text in a policy", policy("r")},
		{"unknown element of a policy", policy("<End>2021-01-01</End>")},
		{"element of a policy twice", policy("<Permission>r</Permission><Permission>r</Permission>")},
		{"unknown permission", policy("<Permission>rw</Permission>")},
		{"permission in capitals", policy("<Permission>R</Permission>")},
		{"permission twice", policy("<Permission>rr</Permission>")},
		{"permission of words", policy("<Permission>r, a</Permission>")},
		{"no time", policy("<Start>soon</Start>")},
		{"month 13", policy("<Start>2021-13-01</Start>")},
		{"day 30 of February", policy("<Start>2021-02-30</Start>")},
		{"hour 24", policy("<Start>2021-02-03T24:00:00Z</Start>")},
		{"leap second", policy("<Start>2016-12-31T23:59:60Z</Start>")},
		{"comma", policy("<Start>2021-06-08T02:05:09,5Z</Start>")},
		{"text after a time", policy("<Start>2021-06-08T02:05:09Zx</Start>")},
		{"year 1, the zero time", policy("<Expiry>0001-01-01T00:00:00Z</Expiry>")},
		{"before the first", policy("<Start>1600-12-31T23:59:59.9999999Z</Start>")},
		{"before the first by its zone", policy("<Start>1601-01-01T00:00:00+00:01</Start>")},
		{"after the last", policy("<Start>10000-01-01T00:00:00Z</Start>")},
		{"after the last by its zone", policy("<Start>9999-12-31T23:59:59-00:01</Start>")},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := ParsePolicies([]byte(c.doc)); !refused(err) {
				t.Errorf("ParsePolicies(%q): got %v, %v; want an *Error", c.doc, got, err)
			}
		})
	}
	if _, err := ParsePolicies([]byte(acl("<Id>" + strings.Repeat("\u00e9", maxPolicyIDUnits) + "</Id>"))); err != nil {
		t.Errorf("an Id of %d characters: got %v, want no error", maxPolicyIDUnits, err)
	}
}

func TestTimes(t *testing.T) {
	for text, want := range map[string]string{
		"2011-10-11":                          "2011-10-11T00:00:00.0000000Z",
		"2011-10-11T12:30Z":                   "2011-10-11T12:30:00.0000000Z",
		"2011-10-11T12:30":                    "2011-10-11T12:30:00.0000000Z",
		"2011-10-11T12:30+02:00":              "2011-10-11T10:30:00.0000000Z",
		"2011-10-11T12:30:45":                 "2011-10-11T12:30:45.0000000Z",
		"2011-10-11T12:30:45.1234567Z":        "2011-10-11T12:30:45.1234567Z",
		"2011-10-11T12:30:45.123456789Z":      "2011-10-11T12:30:45.1234567Z",
		"2011-10-11T12:30:45.1234567+00:00":   "2011-10-11T12:30:45.1234567Z",
		"2011-10-11T23:30:45.5-02:00":         "2011-10-12T01:30:45.5000000Z",
		" 2011-10-11T12:30:45Z\n":             "2011-10-11T12:30:45.0000000Z",
		"1601-01-01T00:00:00.00000009999999Z": "1601-01-01T00:00:00.0000000Z",
	} {
		got, err := ParsePolicies([]byte(acl("<Id>a</Id><AccessPolicy><Expiry>" + text + "</Expiry></AccessPolicy>")))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if out := string(appendTime(nil, "Expiry", got[0].Expiry)); out != "<Expiry>"+want+"</Expiry>" {
			t.Errorf("%q: got %q, want %q", text, out, want)
		}
	}
}
