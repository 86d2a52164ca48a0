package sharedkey

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/store"
)

// TestKnownSAS compares with signatures that Python's hmac module computed from the
// strings to sign in the documentation.
func TestKnownSAS(t *testing.T) {
	c := credential(t, key1)
	table := TableSAS{Table: "People", Permissions: "r", Expiry: "2026-03-05"}
	at := func(version string) TableSAS {
		s := table
		s.Version = version
		return s
	}
	for _, k := range []struct {
		name string
		make func() (string, error)
		want string
	}{
		{"table, everything", func() (string, error) {
			return c.TableSAS(TableSAS{
				Table: "People", Permissions: "raud", Start: "2026-03-04T00:00:00Z", Expiry: "2026-03-05T00:00:00Z", IP: "127.0.0.1-127.0.0.9",
				Protocol: "https,http", StartPartition: "a", StartRow: "1", EndPartition: "b", EndRow: "2",
			})
		}, "8y/bfxlJVomu/AdNQ25H/oxLzPBGcOwv77wASjvLkgw="},
		{"table, 2012", func() (string, error) { return c.TableSAS(at("2012-02-12")) }, "9MbUaW/xNZSIsbeux01QeUMOG3SjTGHAQ9OuSOjeygQ="},
		{"table, 2013", func() (string, error) { return c.TableSAS(at("2013-08-15")) }, "Bud7m5QtxO5++v4eQkke38bQJqAm/kHp6qrmiYyXmiU="},
		{"table, 2015", func() (string, error) { return c.TableSAS(at("2015-02-21")) }, "taC1d5wfyWLfF1wmvzIoJjd4NDuzimTqU4V601kKfNY="},
		{"account", func() (string, error) {
			return c.AccountSAS(AccountSAS{ResourceTypes: "sco", Permissions: "rwdlacu", Expiry: "2026-03-05T00:00:00Z"})
		}, "rPNHP1sw860t5bMrTThQ5Ah+rmvFmmQnz0d5gXi5W/0="},
		{"account, 2020", func() (string, error) {
			return c.AccountSAS(AccountSAS{
				Version: "2020-12-06", Services: "bqtf", ResourceTypes: "sco", Permissions: "rl", Expiry: "2026-03-05T00:00Z", Protocol: "https",
			})
		}, "JgG8ieDpk3r2oAYGdTciy5IuBkpUSWuhvk08n2MN7PY="},
	} {
		t.Run(k.name, func(t *testing.T) {
			query := must(t)(k.make())
			values, err := url.ParseQuery(query)
			if err != nil || values.Get("sig") != k.want {
				t.Fatalf("%q, %v: want the signature %s", query, err, k.want)
			}
			r := request("GET", "/T", query)
			r.TLS = true
			if _, err := verify(verifier(t), r); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestClientSAS verifies tokens created by @azure/data-tables 13.3.2.
func TestClientSAS(t *testing.T) {
	for name, query := range map[string]string{
		"table": "sv=2019-02-02&spr=https%2Chttp&se=2030-01-01T00%3A00%3A00Z&sip=127.0.0.1-127.0.0.9&sp=ra" +
			"&sig=nwTfrXGEh6VCX4AMCPeQjHDnfPVQT%2B6inOy5rw6xIYo%3D&tn=People&srk=1&spk=a%20b%2Bc%25'%C3%A9&epk=z&erk=2",
		"account": "sv=2019-02-02&ss=t&srt=sco&se=2030-01-01T00%3A00%3A00Z&sp=rl&sig=6atERsp82qDGsajntf9Es3ucADuU%2B5Mh%2Fvk0jf0U1tw%3D",
	} {
		t.Run(name, func(t *testing.T) {
			g, err := verify(verifier(t), request("GET", "/devstoreaccount1/People()", query))
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Allow(Query, "People"); err != nil {
				t.Error(err)
			}
			want := Range{Start: edm.Key{Partition: "a b+c%'\u00e9", Row: "1"}, End: edm.Key{Partition: "z", Row: "2"}, HasEnd: true}
			if r, bounded := g.Bounds(); bounded && r != want || bounded != (name == "table") {
				t.Errorf("bounds %+v, %v, want %+v", r, bounded, want)
			}
		})
	}
}

// signSAS signs the parameters of a query. It transcribes the documented strings to
// sign.
func signSAS(t *testing.T, key string, v url.Values) string {
	t.Helper()
	get, version := v.Get, v.Get("sv")
	var lines []string
	switch resource := "/" + account + "/" + strings.ToLower(get("tn")); {
	case v.Has("ss") || v.Has("srt"):
		lines = []string{account, get("sp"), get("ss"), get("srt"), get("st"), get("se"), get("sip"), get("spr"), version, ""}
		if version >= "2020-12-06" {
			lines = slices.Insert(lines, 9, get("ses"))
		}
	case version < "2015-02-21":
		lines = []string{get("sp"), get("st"), get("se"), resource, get("si"), version, get("spk"), get("srk"), get("epk"), get("erk")}
	case version < "2015-04-05":
		lines = []string{get("sp"), get("st"), get("se"), "/table" + resource, get("si"), version, get("spk"), get("srk"), get("epk"), get("erk")}
	default:
		lines = []string{
			get("sp"), get("st"), get("se"), "/table" + resource, get("si"), get("sip"), get("spr"), version,
			get("spk"), get("srk"), get("epk"), get("erk"),
		}
	}
	return macOf(t, key, lines...)
}

// TestSAS starts from a valid token, sets the parameters of a case, signs, and then
// appends to the query.
func TestSAS(t *testing.T) {
	const good, goodAccount = "sv=2019-02-02&tn=People&sp=raud&se=2026-03-05", "sv=2019-02-02&ss=t&srt=sco&sp=rwdlacu&se=2026-03-05"
	const none = "\x00" // removes the parameter
	auth := refusedAuthentication
	source := func(ip string) *Refusal { return mismatch("AuthorizationSourceIPMismatch", "source IP "+ip) }
	for _, c := range []struct {
		name  string
		base  string
		set   string // name=value pairs, one a line
		add   string
		setup func(*Request)
		want  *Refusal
	}{
		{"good", good, "", "", nil, nil},
		{"other parameters", good, "", "&timeout=3&$filter=sig&SIG=x&sigs=1", nil, nil},
		{"table in other case", good, "tn=pEOPLE", "", nil, nil},
		{"table of the service", good, "tn=$MetricsHourPrimaryTransactionsFile", "", nil, nil},
		{"2012", good, "sv=2012-02-12", "", nil, nil},
		{"2013", good, "sv=2013-08-15", "", nil, nil},
		{"2015", good, "sv=2015-02-21", "", nil, nil},
		{"2015, with address", good, "sv=2015-04-05\nsip=127.0.0.1", "", nil, nil},
		{"before the first version", good, "sv=2011-08-18", "", nil, auth},
		{"future", good, "sv=2031-01-01", "", nil, nil},
		{"no version", good, "sv=" + none, "", nil, auth},
		{"version that is not a date of the calendar", good, "sv=2019-02-30", "", nil, auth},
		{"version that is not a date", good, "sv=latest", "", nil, auth},
		{"version with trailing text", good, "sv=2019-02-02T", "", nil, auth},
		{"no table", good, "tn=" + none, "", nil, auth},
		{"empty table", good, "tn=", "", nil, auth},
		{"table name beyond ASCII", good, "tn=Foo\u212a", "", nil, auth},
		{"table with the first and the last letters and digits", good, "tn=azAZ09", "", nil, nil},
		{"table with a backquote", good, "tn=a`", "", nil, auth},
		{"table with a brace", good, "tn=a{", "", nil, auth},
		{"table with a colon", good, "tn=a:b", "", nil, auth},
		{"table with a slash", good, "tn=a/b", "", nil, auth},

		{"no expiry", good, "se=" + none, "", nil, auth},
		{"empty expiry", good, "se=", "", nil, auth},
		{"expired a second ago", good, "se=2026-03-04T11:59:59Z", "", nil, refusedTimes},
		{"expires now", good, "se=2026-03-04T12:00:00Z", "", nil, refusedTimes},
		{"expires in a second", good, "se=2026-03-04T12:00:01Z", "", nil, nil},
		{"expires in a tick", good, "se=2026-03-04T12:00:00.0000001Z", "", nil, nil},
		{"expires in a minute", good, "se=2026-03-04T12:01Z", "", nil, nil},
		{"expires in another zone", good, "se=2026-03-04T13:00:01+01:00", "", nil, nil},
		{"expires in another zone, minutes", good, "se=2026-03-04T13:01+01:00", "", nil, nil},
		{"expires in a tick in another zone", good, "se=2026-03-04T13:00:00.0000001+01:00", "", nil, nil},
		{"expired in another zone", good, "se=2026-03-04T12:30+01:00", "", nil, refusedTimes},
		{"expiry without zone", good, "se=2026-03-05T12:00:00", "", nil, auth},
		{"expiry without zone and seconds", good, "se=2026-03-05T12:00", "", nil, auth},
		{"expiry that is not a time", good, "se=tomorrow", "", nil, auth},
		{"expiry of three colons", good, "se=1:2:3", "", nil, auth},
		{"expiry of the 13th month", good, "se=2026-13-05", "", nil, auth},
		{"expiry that is too long", good, "se=2026-03-05T00:00:00." + strings.Repeat("0", 99) + "Z", "", nil, auth},
		{"starts now", good, "st=2026-03-04T12:00Z", "", nil, nil},
		{"starts in a second", good, "st=2026-03-04T12:00:01Z", "", nil, refusedTimes},
		{"starts after it ends", good, "st=2026-03-07\nse=2026-03-06", "", nil, refusedTimes},
		{"start that is too long", good, "st=2026-03-04T00:00:00." + strings.Repeat("0", 99) + "Z", "", nil, auth},
		{"start that is not a time", good, "st=x", "", nil, auth},

		{"no permissions", good, "sp=" + none, "", nil, auth},
		{"empty permissions", good, "sp=", "", nil, auth},
		{"some permissions", good, "sp=ad", "", nil, nil},
		{"other order", good, "sp=ar", "", nil, auth},
		{"letter twice", good, "sp=rr", "", nil, auth},
		{"other letter", good, "sp=rl", "", nil, auth},
		{"other case", good, "sp=R", "", nil, auth},

		{"range", good, "spk=a\nsrk=\nepk=b\nerk=\u20ac", "", nil, nil},
		{"start row alone", good, "srk=1", "", nil, auth},
		{"end row alone", good, "erk=1", "", nil, auth},
		{"end row with the start partition alone", good, "spk=a\nerk=1", "", nil, auth},
		{"end before start", good, "spk=b\nepk=a", "", nil, nil},
		// Without the empty end, the same signature would cover more keys.
		{"empty partition at the end", good, "epk=", "", nil, auth},
		{"empty row at the end", good, "epk=b\nerk=", "", nil, auth},
		{"key with a line feed", good, "spk=a\nsrk=1", "&epk=%0A", nil, auth},
		{"key with a delete", good, "epk=\x7f", "", nil, auth},
		{"key that is not UTF-8", good, "spk=\xff", "", nil, auth},
		{"key badly escaped", good, "", "&spk=%f", nil, auth},

		{"address", good, "sip=10.0.0.1", "", nil, source("127.0.0.1")},
		{"address of the client", good, "sip=127.0.0.1", "", nil, nil},
		{"range of the client", good, "sip=127.0.0.0-127.0.0.1", "", nil, nil},
		{"range before", good, "sip=127.0.0.0-127.0.0.0", "", nil, source("127.0.0.1")},
		{"range after", good, "sip=127.0.0.2-127.0.0.9", "", nil, source("127.0.0.1")},
		{"range in reverse order", good, "sip=127.0.0.2-127.0.0.0", "", nil, source("127.0.0.1")},
		{"client over IPv6", good, "sip=127.0.0.1", "", func(r *Request) { r.Remote = netip.MustParseAddr("::ffff:127.0.0.1") }, nil},
		{"IPv6 client", good, "sip=127.0.0.1", "", func(r *Request) { r.Remote = netip.MustParseAddr("::1") }, source("::1")},
		{"IPv4-mapped range", good, "sip=::ffff:127.0.0.0-127.0.0.3", "", nil, nil},
		{"IPv6 address", good, "sip=fe80::1", "", func(r *Request) { r.Remote = netip.MustParseAddr("fe80::1%eth0") }, nil},
		{"unknown client", good, "sip=127.0.0.1", "", func(r *Request) { r.Remote = netip.Addr{} }, source("invalid IP")},
		{"address in a header", good, "sip=10.0.0.1", "", func(r *Request) { r.Header.Set("X-Forwarded-For", "10.0.0.1") }, source("127.0.0.1")},
		{"address that is not valid", good, "sip=10.0.0.256", "", nil, auth},
		{"range of two families", good, "sip=10.0.0.1-ffff::", "", func(r *Request) { r.Remote = netip.MustParseAddr("::1") }, source("::1")},
		{"range of two families, IPv4 client", good, "sip=10.0.0.1-ffff::", "", nil, source("127.0.0.1")},
		{"half a range", good, "sip=10.0.0.1-", "", nil, auth},
		{"other half of a range", good, "sip=-127.0.0.1", "", nil, auth},
		{"network", good, "sip=127.0.0.0/8", "", nil, auth},
		{"address in a version without it", good, "sv=2013-08-15\nsip=127.0.0.1", "", nil, auth},

		{"https over http", good, "spr=https", "", nil, refusedProtocol},
		{"https over TLS", good, "spr=https", "", func(r *Request) { r.TLS = true }, nil},
		{"both protocols", good, "spr=https,http", "", nil, nil},
		{"http alone", good, "spr=http", "", nil, auth},
		{"protocol in other case", good, "spr=HTTPS", "", nil, auth},
		{"protocol in a version without it", good, "sv=2015-02-21\nspr=https", "", nil, auth},

		{"signature twice", good, "", "&sig=x", nil, auth},
		{"expiry twice", good, "", "&se=2026-03-05", nil, auth},
		{"permission twice, once escaped", good, "", "&%73p=raud", nil, auth},
		{"start added", good, "", "&st=2020-01-01", nil, auth},
		{"range added", good, "", "&epk=b", nil, auth},
		{"scope on a table", good, "sv=2020-12-06\nses=x", "", nil, auth},
		{"authorization too", good, "", "", func(r *Request) { r.Header.Set("Authorization", "SharedKey x:y") }, auth},
		{"unknown account", good, "", "", func(r *Request) { r.Account = "nobody" }, auth},
		{"both kinds", good, "ss=t", "", nil, auth},

		{"account", goodAccount, "", "", nil, nil},
		{"account, all letters", goodAccount, "sp=rwdxylacuptfi\nss=bqtf\nsrt=cos\nspr=https,http\nsip=127.0.0.1", "", nil, nil},
		{"account, oldest", goodAccount, "sv=2015-04-05", "", nil, nil},
		{"account, other order", goodAccount, "sp=larw", "", nil, nil},
		{"account, scope", goodAccount, "sv=2020-12-06\nses=x", "", nil, nil},
		{"account, scope not signed", goodAccount, "ses=x", "", nil, auth},
		{"account, too old", goodAccount, "sv=2015-02-21", "", nil, auth},
		{"account, other service", goodAccount, "ss=bqf", "", nil, refusedService},
		{"account, no service", goodAccount, "ss=", "", nil, auth},
		{"account, unknown service", goodAccount, "ss=tx", "", nil, auth},
		{"account, no type", goodAccount, "srt=" + none, "", nil, auth},
		{"account, type twice", goodAccount, "srt=oo", "", nil, auth},
		{"account, unknown type", goodAccount, "srt=oz", "", nil, auth},
		{"account, no permission", goodAccount, "sp=", "", nil, auth},
		{"account, unknown permission", goodAccount, "sp=rq", "", nil, auth},
		{"account, permission in other case", goodAccount, "sp=R", "", nil, auth},
		{"account, no expiry", goodAccount, "se=" + none, "", nil, auth},
		{"account, expired", goodAccount, "se=2026-03-04", "", nil, refusedTimes},
		{"account, table", goodAccount, "tn=T", "", nil, auth},
		{"account, range", goodAccount, "", "&spk=a", nil, auth},
		{"account, policy", goodAccount, "", "&si=p", nil, auth},
		{"account, protocol", goodAccount, "spr=https", "", nil, refusedProtocol},
		{"account, address", goodAccount, "sip=1.2.3.4", "", nil, source("127.0.0.1")},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, err := url.ParseQuery(c.base)
			if err != nil {
				t.Fatal(err)
			}
			for pair := range strings.Lines(c.set) {
				name, value, _ := strings.Cut(strings.TrimSuffix(pair, "\n"), "=")
				values.Set(name, value)
				if value == none {
					values.Del(name)
				}
			}
			values.Set("sig", signSAS(t, key2, values))
			r := request("GET", "/T", values.Encode()+c.add)
			if c.setup != nil {
				c.setup(r)
			}
			_, err = verify(verifier(t), r)
			if c.want != nil {
				wantRefusal(t, err, c.want)
			} else if err != nil {
				t.Errorf("%s: %v", r.RawQuery, err)
			}
		})
	}
}

// TestSASSignature changes the encoding of a valid signature.
func TestSASSignature(t *testing.T) {
	const base = "sv=2019-02-02&ss=t&srt=o&sp=r&se=2026-03-05T00:00:00Z"
	values, err := url.ParseQuery(base)
	if err != nil {
		t.Fatal(err)
	}
	// Find a signature with a + and a /, whose encodings differ.
	var signature string
	for i := 0; !strings.Contains(signature, "+") || !strings.Contains(signature, "/"); i++ {
		values.Set("sip", netip.AddrFrom4([4]byte{127, 0, 0, byte(i)}).String()+"-127.0.0.255")
		signature = signSAS(t, key1, values)
	}
	rest := values.Encode()
	for _, c := range []struct {
		name, written string
		ok            bool
	}{
		{"escaped", url.QueryEscape(signature), true},
		{"plain", signature, true},
		{"escaped twice", url.QueryEscape(url.QueryEscape(signature)), false},
		{"base64 of URLs", strings.NewReplacer("+", "-", "/", "_").Replace(signature), false},
		{"no padding", strings.TrimSuffix(signature, "="), false},
		{"longer", url.QueryEscape(signature) + "A", false},
		{"empty", "", false},
		{"line feed inside", url.QueryEscape(signature[:4] + "\n" + signature[4:]), false},
		{"by another key", url.QueryEscape(signSAS(t, otherKey, values)), false},
		{"a megabyte", strings.Repeat("A", 1<<20), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request("GET", "/T", rest+"&sig="+c.written)
			r.Remote = netip.MustParseAddr("127.0.0.255")
			_, err := verify(verifier(t), r)
			if c.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantRefusal(t, err, refusedAuthentication)
		})
	}
	t.Run("absent", func(t *testing.T) {
		_, err := verify(verifier(t), request("GET", "/T", rest))
		wantRefusal(t, err, refusedAuthentication)
	})
}

func TestPolicies(t *testing.T) {
	policies := []Policy{
		{"full", "2026-03-01T00:00:00.0000000Z", "2026-03-05T00:00:00.0000000Z", "ra"},
		{"dates", "2026-03-01", "2026-03-05", ""},
		{"letters", "", "", "ur"},
		{"empty", "", "", ""},
		{"expired", "", "2026-03-04", "r"},
		{"not started", "2026-03-05", "2026-03-06", "r"},
		{"invalid date", "", "soon", "r"},
		{"invalid letters", "", "2026-03-05", "rx"},
		{strings.Repeat("\u20ac", 64), "", "2026-03-05", "r"},
		{strings.Repeat("\u20ac", 65), "", "2026-03-05", "r"},
	}
	for _, c := range []struct {
		name, id, st, se, sp string
		want                 *Refusal
	}{
		{"all of the policy", "full", "", "", "", nil},
		{"letters of the token", "dates", "", "", "r", nil},
		{"dates of the token", "letters", "", "2026-03-05", "", nil},
		{"all of the token", "empty", "", "2026-03-05", "r", nil},
		{"longest name", strings.Repeat("\u20ac", 64), "", "", "", nil},
		{"name too long", strings.Repeat("\u20ac", 65), "", "", "", refusedAuthentication},
		{"unknown", "none", "", "2026-03-05", "r", refusedAuthentication},
		{"other case", "Full", "", "", "", refusedAuthentication},
		{"start in both", "full", "2026-03-01T00:00:00.0000000Z", "", "", refusedAuthentication},
		{"expiry in both", "full", "", "2026-03-05T00:00:00.0000000Z", "", refusedAuthentication},
		{"letters in both", "full", "", "", "ra", refusedAuthentication},
		{"other letters in both", "letters", "", "2026-03-05", "a", refusedAuthentication},
		{"expiry in none", "letters", "", "", "", refusedTimes},
		{"letters in none", "dates", "", "", "", refusedAuthentication},
		{"expired", "expired", "", "", "", refusedTimes},
		{"not started", "not started", "", "", "", refusedTimes},
		{"policy with an invalid date", "invalid date", "", "", "", refusedAuthentication},
		{"policy with invalid letters", "invalid letters", "", "", "", refusedAuthentication},
		{"token with invalid letters", "dates", "", "", "ar", refusedAuthentication},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := url.Values{"sv": {"2019-02-02"}, "tn": {"People"}, "si": {c.id}}
			for name, value := range map[string]string{"st": c.st, "se": c.se, "sp": c.sp} {
				if value != "" {
					values.Set(name, value)
				}
			}
			values.Set("sig", signSAS(t, key1, values))
			v := verifier(t)
			v.Policies = func(_ context.Context, ofAccount, ofTable string) ([]Policy, error) {
				if ofAccount != account || ofTable != "People" {
					t.Errorf("read the policies of %q in %q", ofTable, ofAccount)
				}
				return policies, nil
			}
			g, err := verify(v, request("GET", "/People()", values.Encode()))
			if c.want != nil {
				wantRefusal(t, err, c.want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Allow(Query, "People"); err != nil {
				t.Error(err)
			}
			wantRefusal(t, g.Allow(DeleteEntity, "People"), refusedPermission)
		})
	}
}

// TestPoliciesAfterSignature checks that a request with a wrong signature does not read
// policies from the store, and that a token whose policy is not found is refused, though it
// has all fields itself.
func TestPoliciesAfterSignature(t *testing.T) {
	broken := errors.New("disk on fire")
	v := verifier(t)
	asked := 0
	var answer error
	v.Policies = func(context.Context, string, string) ([]Policy, error) {
		asked++
		return nil, answer
	}
	complete := TableSAS{Table: "T", Identifier: "p", Permissions: "r", Expiry: "2026-03-05"}
	query, forged := must(t)(credential(t, key1).TableSAS(complete)), must(t)(credential(t, otherKey).TableSAS(complete))
	if _, err := verify(v, request("GET", "/T", forged)); asked != 0 {
		t.Errorf("policies were read for a wrong signature: %v", err)
	}
	_, err := verify(v, request("GET", "/T", query))
	wantRefusal(t, err, refusedAuthentication)
	answer = store.ErrTableNotFound
	_, err = verify(v, request("GET", "/T", query))
	wantRefusal(t, err, refusedAuthentication)
	answer = broken
	if _, err = verify(v, request("GET", "/T", query)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if asked != 3 {
		t.Errorf("policies were read %d times, want 3", asked)
	}
	v.Policies = nil
	_, err = verify(v, request("GET", "/T", query))
	wantRefusal(t, err, refusedAuthentication)
}

func TestCredentialRejectsInvalidSAS(t *testing.T) {
	c := credential(t, key1)
	for name, one := range map[string]struct {
		TableSAS
		says string // the field at the end of the error
	}{
		"nothing":         {TableSAS{}, "se is missing"},
		"no table":        {TableSAS{Permissions: "r", Expiry: "2026-03-05"}, ""},
		"no expiry":       {TableSAS{Table: "T", Permissions: "r"}, "se is missing"},
		"no permission":   {TableSAS{Table: "T", Expiry: "2026-03-05"}, "sp is missing"},
		"letters":         {TableSAS{Table: "T", Permissions: "rw", Expiry: "2026-03-05"}, ""},
		"address":         {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", IP: "here"}, "10.0.0.1-10.0.0.9"},
		"protocol":        {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", Protocol: "http"}, "spr is https, or https,http"},
		"start row alone": {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", StartRow: "1"}, "srk needs spk"},
		"end row alone":   {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", EndRow: "1"}, "erk needs epk"},
		"line feed":       {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", EndPartition: "a\nb"}, ""},
		"not UTF-8":       {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", EndPartition: "\xff"}, ""},
		"unsigned field":  {TableSAS{Table: "T", Permissions: "r", Expiry: "2026-03-05", Version: "2013-08-15", IP: "127.0.0.1"}, ""},
		"malformed dates": {TableSAS{Table: "T", Permissions: "r", Expiry: "tomorrow"}, "se is no time such as 2006-01-02T15:04:05Z"},
		"malformed start": {TableSAS{Table: "T", Permissions: "r", Start: "today", Expiry: "2026-03-05"}, "st is no time such as 2006-01-02T15:04:05Z"},
	} {
		q, err := c.TableSAS(one.TableSAS)
		if err == nil || !errors.Is(err, errSAS) || !strings.HasSuffix(err.Error(), cmp.Or(one.says, errSAS.Error())) {
			t.Errorf("%s: created %q, %v", name, q, err)
		}
	}
	for name, s := range map[string]AccountSAS{
		"nothing":   {},
		"no type":   {Permissions: "r", Expiry: "2026-03-05"},
		"no expiry": {Permissions: "r", ResourceTypes: "o"},
		"letters":   {Permissions: "rz", ResourceTypes: "o", Expiry: "2026-03-05"},
	} {
		if q, err := c.AccountSAS(s); err == nil {
			t.Errorf("%s: created %s", name, q)
		}
	}
}

func TestBounds(t *testing.T) {
	const emoji, private = "\U0001F600", "\uE000" // in UTF-16 code units, emoji is less than private
	for _, c := range []struct {
		name    string
		set     string
		bounded bool
		in, out []edm.Key
	}{
		{"none", "", false, []edm.Key{{}, {Partition: "b", Row: "x"}}, nil},
		{
			"spk", "spk=b", true,
			[]edm.Key{{Partition: "b"}, {Partition: "b", Row: "x"}, {Partition: "c"}},
			[]edm.Key{{}, {Partition: "a", Row: "z"}, {Partition: "B"}},
		},
		{"epk", "epk=b", true, []edm.Key{{}, {Partition: "b", Row: "zzz"}, {Partition: "a"}}, []edm.Key{{Partition: "b\x00"}, {Partition: "ba"}, {Partition: "c"}}},
		{
			"spk, srk", "spk=b&srk=2", true,
			[]edm.Key{{Partition: "b", Row: "2"}, {Partition: "c", Row: "1"}},
			[]edm.Key{{Partition: "b", Row: "1"}, {Partition: "a", Row: "3"}},
		},
		{
			"epk, erk", "epk=b&erk=2", true,
			[]edm.Key{{Partition: "b", Row: "2"}, {Partition: "a", Row: "3"}},
			[]edm.Key{{Partition: "b", Row: "20"}, {Partition: "c", Row: "1"}},
		},
		{"one partition", "spk=b&epk=b", true, []edm.Key{{Partition: "b"}, {Partition: "b", Row: "x"}}, []edm.Key{{}, {Partition: "a"}, {Partition: "bb"}}},
		{"one row", "spk=b&srk=1&epk=b&erk=1", true, []edm.Key{{Partition: "b", Row: "1"}}, []edm.Key{{Partition: "b"}, {Partition: "b", Row: "11"}}},
		{
			"rows at the edges only", "spk=a&srk=5&epk=c&erk=5", true,
			[]edm.Key{{Partition: "b", Row: "1"}, {Partition: "b", Row: "9"}},
			[]edm.Key{{Partition: "a", Row: "4"}, {Partition: "c", Row: "6"}},
		},
		{"empty start", "spk=&srk=", true, []edm.Key{{}, {Partition: "a"}}, nil},
		{"end before start", "spk=b&epk=a", true, nil, []edm.Key{{}, {Partition: "a"}, {Partition: "aa"}, {Partition: "b"}}},
		{"order of code units", "spk=" + url.QueryEscape(private), true, []edm.Key{{Partition: private}}, []edm.Key{{Partition: emoji}}},
		{"order of code units at the end", "epk=" + url.QueryEscape(emoji), true, []edm.Key{{Partition: emoji}, {Partition: "z"}}, []edm.Key{{Partition: private}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, err := url.ParseQuery("sv=2019-02-02&tn=T&sp=r&se=2026-03-05&" + c.set)
			if err != nil {
				t.Fatal(err)
			}
			values.Set("sig", signSAS(t, key1, values))
			g, err := verify(verifier(t), request("GET", "/T", values.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r, bounded := g.Bounds()
			if bounded != c.bounded {
				t.Errorf("bounded: %v, want %v", bounded, c.bounded)
			}
			given := filter.MustParse("RowKey ne 'none'")
			restricted := g.Restrict(given)
			if (restricted == given) == bounded {
				t.Errorf("bounded: %v, restricted to %v", bounded, restricted)
			}
			matches := func(k edm.Key) bool { e := edm.Entity{Key: k}; return restricted.Match(e.View()) }
			for _, k := range c.in {
				if err := g.AllowKey(k); err != nil || !r.Contains(k) || !matches(k) {
					t.Errorf("%+v is not in %+v, or not in %v: %v", k, r, restricted, err)
				}
				if k.Row = "none"; matches(k) {
					t.Errorf("%v lost the filter %v", restricted, given)
				}
			}
			for _, k := range c.out {
				if r.Contains(k) || matches(k) {
					t.Errorf("%+v is in %+v or in %v", k, r, restricted)
				}
				wantRefusal(t, g.AllowKey(k), refusedOperation)
			}
		})
	}
}
