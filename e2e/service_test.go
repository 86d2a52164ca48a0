package e2e

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func TestAccessPolicies(t *testing.T) {
	_, client := newTable(t)
	policies := func(n int) []*aztables.SignedIdentifier {
		var all []*aztables.SignedIdentifier
		for i := range n {
			all = append(all, &aztables.SignedIdentifier{ID: pointer("id " + strings.Repeat("x", i)), AccessPolicy: &aztables.AccessPolicy{
				Start:      pointer(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
				Expiry:     pointer(time.Date(2126, 1, 2, 3, 4, 5, 600, time.UTC)),
				Permission: pointer("raud"[:1+i%4]),
			}})
		}
		return all
	}
	for _, n := range []int{1, 5, 0} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			must(client.SetAccessPolicy(t.Context(), &aztables.SetAccessPolicyOptions{TableACL: policies(n)}))(t)
			got := must(client.GetAccessPolicy(t.Context(), nil))(t).SignedIdentifiers
			if want := policies(n); !reflect.DeepEqual(got, want) {
				t.Errorf("got %s, want %s", describe(got), describe(want))
			}
		})
	}
	t.Run("no table", func(t *testing.T) {
		_, err := shared.service(t).NewClient("NoSuchTable").GetAccessPolicy(t.Context(), nil)
		wantRefusal(t, err, refusal{404, "ResourceNotFound"})
	})
}

func describe(all []*aztables.SignedIdentifier) string {
	var b strings.Builder
	for _, i := range all {
		b.WriteString(*i.ID + " " + i.AccessPolicy.Start.String() + " " + i.AccessPolicy.Expiry.String() + " " + *i.AccessPolicy.Permission + "; ")
	}
	return b.String()
}

// restoreProperties restores the account's properties at the end of a test.
func restoreProperties(t *testing.T, service *aztables.ServiceClient) {
	t.Helper()
	off := &aztables.Metrics{Version: pointer("1.0"), Enabled: pointer(false), RetentionPolicy: &aztables.RetentionPolicy{Enabled: pointer(false)}}
	t.Cleanup(func() {
		ctx, stop := cleanupContext()
		defer stop()
		_, err := service.SetProperties(ctx, aztables.ServiceProperties{
			HourMetrics: off, MinuteMetrics: off, Cors: []*aztables.CorsRule{},
			Logging: &aztables.Logging{
				Version: pointer("1.0"), Read: pointer(false), Write: pointer(false), Delete: pointer(false),
				RetentionPolicy: &aztables.RetentionPolicy{Enabled: pointer(false)},
			},
		}, nil)
		if err != nil {
			t.Error(err)
		}
	})
}

func corsRule(origins, methods string) *aztables.CorsRule {
	return &aztables.CorsRule{
		AllowedOrigins: &origins, AllowedMethods: &methods, AllowedHeaders: pointer("content-type,x-ms-meta*"),
		ExposedHeaders: pointer("x-ms-*"), MaxAgeInSeconds: pointer(int32(60)),
	}
}

func TestServiceProperties(t *testing.T) {
	service := shared.service(t)
	restoreProperties(t, service)
	week := &aztables.RetentionPolicy{Enabled: pointer(true), Days: pointer(int32(7))}
	want := aztables.ServiceProperties{
		Logging:       &aztables.Logging{Version: pointer("1.0"), Read: pointer(true), Write: pointer(true), Delete: pointer(false), RetentionPolicy: week},
		HourMetrics:   &aztables.Metrics{Version: pointer("1.0"), Enabled: pointer(true), IncludeAPIs: pointer(true), RetentionPolicy: week},
		MinuteMetrics: &aztables.Metrics{Version: pointer("1.0"), Enabled: pointer(false), RetentionPolicy: &aztables.RetentionPolicy{Enabled: pointer(false)}},
		Cors:          []*aztables.CorsRule{corsRule("https://example.org,https://example.com", "GET,PUT"), corsRule("*", "GET")},
	}
	must(service.SetProperties(t.Context(), want, nil))(t)
	got := must(service.GetProperties(t.Context(), nil))(t).ServiceProperties
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, want %s", quoteAny(t, got), quoteAny(t, want))
	}
	// An omitted section is unchanged.
	must(service.SetProperties(t.Context(), aztables.ServiceProperties{MinuteMetrics: want.HourMetrics}, nil))(t)
	got = must(service.GetProperties(t.Context(), nil))(t).ServiceProperties
	if want.MinuteMetrics = want.HourMetrics; !reflect.DeepEqual(got.Logging, want.Logging) || !reflect.DeepEqual(got.MinuteMetrics, want.MinuteMetrics) {
		t.Errorf("after setting one section: got %s, want %s", quoteAny(t, got), quoteAny(t, want))
	}
	for name, bad := range map[string]aztables.ServiceProperties{
		"a year and a day": {HourMetrics: &aztables.Metrics{
			Version: pointer("1.0"), Enabled: pointer(true), IncludeAPIs: pointer(true),
			RetentionPolicy: &aztables.RetentionPolicy{Enabled: pointer(true), Days: pointer(int32(366))},
		}},
		"six rules": {Cors: []*aztables.CorsRule{
			corsRule("*", "GET"), corsRule("*", "GET"), corsRule("*", "GET"), corsRule("*", "GET"), corsRule("*", "GET"), corsRule("*", "GET"),
		}},
	} {
		_, err := service.SetProperties(t.Context(), bad, nil)
		if got, want := refusalOf(err), (refusal{400, "InvalidXmlDocument"}); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

// TestCORS sends preflight requests, which the SDK cannot.
func TestCORS(t *testing.T) {
	service := shared.service(t)
	restoreProperties(t, service)
	name, _ := newTable(t)
	must(service.SetProperties(t.Context(), aztables.ServiceProperties{Cors: []*aztables.CorsRule{corsRule("https://example.org", "GET,PUT")}}, nil))(t)
	for _, c := range []struct {
		name, origin, method, headers string
		status                        int
	}{
		{"allowed", "https://example.org", "GET", "", 200},
		{"allowed headers", "https://example.org", "PUT", "x-ms-meta-a,content-type", 200},
		{"other headers", "https://example.org", "GET", "x-other", 403},
		{"other method", "https://example.org", "DELETE", "", 403},
		{"other origin", "https://example.com", "GET", "", 403},
		{"no origin", "", "GET", "", 400},
		{"no method", "https://example.org", "", "", 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := ask(t, http.MethodOptions, shared.url+"/"+name, map[string]string{
				"Origin": c.origin, "Access-Control-Request-Method": c.method, "Access-Control-Request-Headers": c.headers,
			})
			if resp.StatusCode != c.status {
				t.Errorf("got %d, want %d", resp.StatusCode, c.status)
			}
			want := ""
			if c.status == http.StatusOK {
				want = c.origin
			}
			if got := resp.Header.Get("Access-Control-Allow-Origin"); got != want {
				t.Errorf("got Access-Control-Allow-Origin %q, want %q", got, want)
			}
		})
	}
}

// ask sends a request without an Authorization header and returns the response after reading
// its body.
func ask(t *testing.T, method, url string, header map[string]string) *http.Response {
	t.Helper()
	req := must(http.NewRequestWithContext(t.Context(), method, url, nil))(t)
	for name, value := range header {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp := must(http.DefaultClient.Do(req))(t)
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp
}

func TestStatistics(t *testing.T) {
	_, err := shared.service(t).GetStatistics(t.Context(), nil)
	wantRefusal(t, err, refusal{400, "InvalidQueryParameterValue"})

	secondary := *shared
	secondary.url = strings.Replace(shared.url, shared.account, shared.account+"-secondary", 1)
	got := must(secondary.service(t).GetStatistics(t.Context(), nil))(t).GeoReplication
	if got == nil || got.Status == nil || *got.Status != aztables.GeoReplicationStatusLive ||
		got.LastSyncTime == nil || time.Since(*got.LastSyncTime) > time.Hour {
		t.Errorf("got %+v, want live and a recent time", got)
	}
}

// TestSecondary reads from the secondary endpoint, and checks that writes fail.
func TestSecondary(t *testing.T) {
	name, owner := newTable(t)
	must(owner.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	secondary := *shared
	secondary.url = strings.Replace(shared.url, shared.account, shared.account+"-secondary", 1)
	client := secondary.service(t).NewClient(name)
	get(t, client, "p", "r")
	wantStrings(t, "rows", rows(t, client, ""), []string{"r"})
	if _, err := client.AddEntity(t.Context(), entity("p", "s"), nil); refusalOf(err).status != 403 {
		t.Errorf("an insert: got %v, want 403", err)
	}
	wantStrings(t, "rows of the primary", rows(t, owner, ""), []string{"r"})
}
