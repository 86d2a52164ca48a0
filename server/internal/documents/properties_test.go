package documents

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

// Sections as clients send them.
const (
	loggingOn = "<Logging><Version>1.0</Version><Read>true</Read><Write>False</Write><Delete>True</Delete><RetentionPolicy><Enabled>true</Enabled><Days>" +
		"365</Days></RetentionPolicy></Logging>"
	loggingOff = "<Logging><Version>1.0</Version><Read>false</Read><Write>false</Write><Delete>false</Delete><RetentionPolicy><Enabled>false</Enabled>" +
		"</RetentionPolicy></Logging>"
	metricsOn = "<HourMetrics><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs><RetentionPolicy><Enabled>true</Enabled><Days>" +
		"5</Days></RetentionPolicy></HourMetrics>"
	metricsOff = "<HourMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></HourMetrics>"
	ruleOne    = "<CorsRule><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedMethods>GET</AllowedMethods><MaxAgeInSeconds>0</MaxAgeInSeconds>" +
		"<ExposedHeaders /><AllowedHeaders /></CorsRule>"
	ruleTwo = "<CorsRule><AllowedOrigins> a.example, http://b.example:8080 </AllowedOrigins><AllowedMethods>GET,PUT,</AllowedMethods>" +
		"<AllowedHeaders>x-ms-meta-a,x-ms-meta-b*,x-ms-c*</AllowedHeaders><ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>2147483647</MaxAgeInSeconds></CorsRule>"
)

// defaultsText is the document of an account without properties.
const defaultsText = prologue + "<StorageServiceProperties>" + loggingOff + metricsOff +
	"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics><Cors />" +
	"</StorageServiceProperties>"

func properties(sections ...string) string {
	return "<?xml version='1.0' encoding='utf-8'?>\n<StorageServiceProperties>" + strings.Join(sections, "\n ") + "</StorageServiceProperties>"
}

// full returns the properties of all sections above.
func full() Properties {
	return Properties{
		Logging:     Logging{Read: true, Delete: true, RetentionDays: 365},
		HourMetrics: Metrics{Enabled: true, IncludeAPIs: true, RetentionDays: 5},
		Cors: []cors.Rule{
			{AllowedMethods: []string{"GET"}, AllowedOrigins: []string{"www.xyz.com"}},
			{
				AllowedMethods: []string{"GET", "PUT"}, AllowedOrigins: []string{"a.example", "http://b.example:8080"},
				AllowedHeaders: []string{"x-ms-meta-a", "x-ms-meta-b*", "x-ms-c*"}, ExposedHeaders: []string{"*"}, MaxAge: 1<<31 - 1,
			},
		},
	}
}

func TestMergeProperties(t *testing.T) {
	minute := strings.ReplaceAll(metricsOn, "HourMetrics", "MinuteMetrics")
	for _, c := range []struct {
		name, doc string
		old       Properties
		want      func(p *Properties) // of old
	}{
		{"all", properties("<Cors>"+ruleOne+ruleTwo+"</Cors>", metricsOn, loggingOn), Properties{}, func(p *Properties) { *p = full() }},
		{"logging off", properties(loggingOff), full(), func(p *Properties) { p.Logging = Logging{} }},
		{"hours off", properties(metricsOff), full(), func(p *Properties) { p.HourMetrics = Metrics{} }},
		{"minutes on", properties(minute), full(), func(p *Properties) { p.MinuteMetrics = Metrics{true, true, 5} }},
		{
			"without APIs, Days while off", properties("<HourMetrics><RetentionPolicy><Days>9999</Days><Enabled>FALSE</Enabled></RetentionPolicy>" +
				"<IncludeAPIs> false </IncludeAPIs><Enabled>TRUE</Enabled><Version> 1.0 </Version></HourMetrics>"),
			full(), func(p *Properties) { p.HourMetrics = Metrics{Enabled: true} },
		},
		{"no rules", properties("<Cors />"), full(), func(p *Properties) { p.Cors = nil }},
		{
			"headers in another order", properties("<Cors>" + strings.NewReplacer(
				"x-ms-meta-a,x-ms-meta-b*,x-ms-c*", "x-ms-meta-b*,x-ms-c*,x-ms-meta-z,x-ms-meta-a", "<ExposedHeaders>*", "<ExposedHeaders>*,b,a",
			).Replace(ruleTwo) + "</Cors>"), full(),
			func(p *Properties) {
				p.Cors = p.Cors[1:]
				p.Cors[0].AllowedHeaders = []string{"x-ms-meta-b*", "x-ms-c*", "x-ms-meta-z", "x-ms-meta-a"}
				p.Cors[0].ExposedHeaders = []string{"*", "b", "a"}
			},
		},
		{"one rule", properties("<Cors>" + ruleOne + "</Cors>"), full(), func(p *Properties) { p.Cors = p.Cors[:1] }},
		{"byte order mark", prologue + properties("<Cors />")[len("<?xml version='1.0' encoding='utf-8'?>\n"):], full(), func(p *Properties) { p.Cors = nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.old
			c.want(&want)
			got, err := MergeProperties(c.old, []byte(c.doc))
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("MergeProperties(%+v, %q):\ngot  %+v, %v\nwant %+v", c.old, c.doc, got, err, want)
			}
		})
	}
}

// TestHeadersInOrder checks that a document has whole names of headers before prefixes, in
// whatever order they were given or stored.
func TestHeadersInOrder(t *testing.T) {
	p := full()
	p.Cors = p.Cors[1:]
	p.Cors[0].AllowedHeaders = []string{"x-ms-meta-b*", "x-ms-c*", "x-ms-meta-z", "x-ms-meta-a"}
	p.Cors[0].ExposedHeaders = []string{"*", "b", "a"}
	stored, err := DecodeProperties(EncodeProperties(nil, p))
	if err != nil || !reflect.DeepEqual(stored, p) {
		t.Fatalf("the stored properties are %+v, %v, want %+v", stored, err, p)
	}
	got := string(AppendProperties(nil, stored))
	for _, want := range []string{
		"<AllowedHeaders>x-ms-meta-z,x-ms-meta-a,x-ms-meta-b*,x-ms-c*</AllowedHeaders>", "<ExposedHeaders>b,a,*</ExposedHeaders>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the document is %s, want %s", got, want)
		}
	}
}

func TestMergePropertiesRefused(t *testing.T) {
	// with returns a document of section with a text replaced.
	with := func(section string, pairs ...string) string {
		changed := strings.NewReplacer(pairs...).Replace(section)
		if changed == section {
			t.Fatalf("none of %q was found", pairs)
		}
		return properties(changed)
	}
	cors := func(rules ...string) string { return properties("<Cors>" + strings.Join(rules, "") + "</Cors>") }
	rule := func(pairs ...string) string { return with("<Cors>"+ruleTwo+"</Cors>", pairs...) }
	names := func(n int, name string) string { return strings.TrimSuffix(strings.Repeat(name+",", n), ",") }
	for _, c := range []struct{ name, doc string }{
		{"nothing", ""},
		{"no section", properties()},
		{"unknown section", properties("<DefaultServiceVersion>2011-08-18</DefaultServiceVersion>")},
		{"unknown section after a known one", properties("<Cors />", "<StaticWebsite />")},
		{"section twice", properties("<Cors />", "<Cors />")},
		{"policies", "<SignedIdentifiers />"},
		{"empty logging", properties("<Logging />")},
		{"logging without Read", with(loggingOn, "<Read>true</Read>", "")},
		{"logging with a number for Read", with(loggingOn, "<Read>true</Read>", "<Read>1</Read>")},
		{"logging with two Read", with(loggingOn, "<Read>true</Read>", "<Read>true</Read><Read>true</Read>")},
		{"logging of another version", with(loggingOn, "1.0", "2.0")},
		{"logging without retention", with(loggingOff, "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>", "")},
		{"retention without Enabled", with(loggingOff, "<Enabled>false</Enabled>", "<Days>1</Days>")},
		{"retention without Days", with(loggingOn, "<Days>365</Days>", "")},
		{"retention for 366 days", with(loggingOn, "365", "366")},
		{"retention for 0 days", with(loggingOn, "365", "0")},
		{"retention for -1 days", with(loggingOn, "365", "-1")},
		{"retention for +1 days", with(loggingOn, "365", "+1")},
		{"retention for 2^64+1 days", with(loggingOn, "365", "18446744073709551617")},
		{"retention for an empty number of days", with(loggingOff, "</Enabled>", "</Enabled><Days />")},
		{"metrics without APIs", with(metricsOn, "<IncludeAPIs>true</IncludeAPIs>", "")},
		{"APIs without metrics", with(metricsOff, "</Enabled><R", "</Enabled><IncludeAPIs>false</IncludeAPIs><R")},
		{"six rules", cors(slices.Repeat([]string{ruleOne}, 6)...)},
		{"another element among rules", cors(ruleOne, "<Rule />")},
		{"empty rule", cors("<CorsRule />")},
		{"rule without methods", rule("<AllowedMethods>GET,PUT,</AllowedMethods>", "")},
		{"rule of no methods", rule("GET,PUT,", " , ")},
		{"rule of an unknown method", rule("PUT", "FETCH")},
		{"rule of a method in small letters", rule("PUT", "put")},
		{"rule of no origins", rule(" a.example, http://b.example:8080 ", "")},
		{"rule of an origin with a space", rule("a.example", "a example")},
		{"rule of an origin that is not ASCII", rule("a.example", "\u00e4.example")},
		{"rule of an origin of 257 bytes", rule("a.example", strings.Repeat("a", 257))},
		{"rule without headers allowed", rule("<AllowedHeaders>x-ms-meta-a,x-ms-meta-b*,x-ms-c*</AllowedHeaders>", "")},
		{"rule without headers exposed", rule("<ExposedHeaders>*</ExposedHeaders>", "")},
		{"rule without age", rule("<MaxAgeInSeconds>2147483647</MaxAgeInSeconds>", "")},
		{"rule of a negative age", rule("2147483647", "-1")},
		{"rule of too large an age", rule("2147483647", "2147483648")},
		{"three prefixes", rule("x-ms-meta-a,", "*,")},
		{"65 headers", rule("x-ms-meta-a", names(65, "a"))},
		{"a header of 257 bytes", rule("x-ms-meta-a", strings.Repeat("a", 257))},
		{"a header with a space", rule("x-ms-meta-a", "a b")},
		{"a header with a line's end", rule("x-ms-meta-a", "a&#10;b: c")},
		{"a header with a star within", rule("x-ms-meta-a", "a*b")},
		{"a header of two stars", rule("x-ms-meta-a", "**")},
		{"more than 2 KiB", cors(slices.Repeat([]string{strings.ReplaceAll(ruleOne, "www.xyz.com", names(2, strings.Repeat("o", 250)))}, 5)...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, err := MergeProperties(full(), []byte(c.doc)); !refused(err) || !reflect.DeepEqual(got, Properties{}) {
				t.Errorf("MergeProperties(%q): got %+v, %v; want an *Error", c.doc, got, err)
			}
		})
	}
	for _, doc := range []string{
		rule("x-ms-meta-a", names(64, "a")), rule("x-ms-meta-a", strings.Repeat("a", 256)), rule("a.example", strings.Repeat("a", 256)),
		cors(slices.Repeat([]string{ruleOne}, 5)...),
	} {
		if _, err := MergeProperties(Properties{}, []byte(doc)); err != nil {
			t.Errorf("MergeProperties(%q): got %v, want no error at the limit", doc, err)
		}
	}
}

func TestAppendProperties(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Properties
		want string
	}{
		{"defaults", Properties{}, defaultsText},
		{
			"all", full(),
			prologue + "<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>false</Write><Delete>true</Delete>" +
				"<RetentionPolicy><Enabled>true</Enabled><Days>365</Days></RetentionPolicy></Logging>" + metricsOn +
				"<MinuteMetrics><Version>1.0</Version><Enabled>false</Enabled><RetentionPolicy><Enabled>false</Enabled></RetentionPolicy></MinuteMetrics>" +
				"<Cors><CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>www.xyz.com</AllowedOrigins><AllowedHeaders /><ExposedHeaders />" +
				"<MaxAgeInSeconds>0</MaxAgeInSeconds></CorsRule><CorsRule><AllowedMethods>GET,PUT</AllowedMethods>" +
				"<AllowedOrigins>a.example,http://b.example:8080</AllowedOrigins><AllowedHeaders>x-ms-meta-a,x-ms-meta-b*,x-ms-c*</AllowedHeaders>" +
				"<ExposedHeaders>*</ExposedHeaders><MaxAgeInSeconds>2147483647</MaxAgeInSeconds></CorsRule></Cors></StorageServiceProperties>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := AppendProperties(nil, c.p)
			if string(got) != c.want {
				t.Errorf("AppendProperties(%+v):\ngot  %q\nwant %q", c.p, got, c.want)
			}
			if back, err := MergeProperties(full(), got); err != nil || !reflect.DeepEqual(back, c.p) {
				t.Errorf("MergeProperties(%q):\ngot  %+v, %v\nwant %+v", got, back, err, c.p)
			}
		})
	}
}

func TestAppendStats(t *testing.T) {
	at := time.Date(2017, 8, 23, 0, 4, 44, 9e8, time.FixedZone("", 7200))
	want := prologue + "<StorageServiceStats><GeoReplication><Status>live</Status><LastSyncTime>Tue, 22 Aug 2017 22:04:44 GMT</LastSyncTime>" +
		"</GeoReplication></StorageServiceStats>"
	if got := string(AppendStats(nil, at)); got != want {
		t.Errorf("AppendStats(%v):\ngot  %q\nwant %q", at, got, want)
	}
}
