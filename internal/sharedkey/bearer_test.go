package sharedkey

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

func jwt(parts ...string) string {
	for i := range parts {
		parts[i] = base64.RawURLEncoding.EncodeToString([]byte(parts[i]))
	}
	return strings.Join(parts, ".")
}

func TestBearer(t *testing.T) {
	const (
		head    = `{"alg":"RS256","typ":"JWT"}`
		tenant  = "https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/"
		service = "https://storage.azure.com"
	)
	now := noon.Unix()
	claims := func(iss, aud string, nbf, exp int64) string {
		return jwt(head, fmt.Sprintf(`{"iss":%q,"aud":%q,"nbf":%d,"iat":%d,"exp":%d,"oid":"x"}`, iss, aud, nbf, nbf, exp), "signature")
	}
	good := claims(tenant, service, now-60, now+3600)
	body := fmt.Sprintf(`{"iss":%q,"aud":%q,"exp":%d}`, tenant, service, now+60)
	for _, c := range []struct {
		name, token string
		change      func(*Verifier, *Request)
		ok          bool
	}{
		{"good", good, nil, true},
		{"audience with a slash", claims(tenant, service+"/", now, now+60), nil, true},
		{"audience of the account", claims(tenant, "https://devstoreaccount1.table.core.windows.net", now, now+60), nil, true},
		{"audience by application id", claims(tenant, storageID, now, now+60), nil, true},
		{"audience of another account", claims(tenant, "https://other.table.core.windows.net", now, now+60), nil, false},
		{"other audience", claims(tenant, "https://graph.microsoft.com", now, now+60), nil, false},
		{"no audience", claims(tenant, "", now, now+60), nil, false},
		{"issuer of version 2", claims("https://login.microsoftonline.com/ab1f708d-50f6-404c-a006-d71b2ac7a606/v2.0", service, now, now+60), nil, true},
		{"issuer of the cloud in China", claims("https://sts.chinacloudapi.cn/ab1f708d-50f6-404c-a006-d71b2ac7a606/", service, now, now+60), nil, true},
		{
			"issuer of version 2 of the cloud in China",
			claims("https://login.partner.microsoftonline.cn/ab1f708d-50f6-404c-a006-d71b2ac7a606/v2.0", service, now, now+60), nil, true,
		},
		{
			"issuer of version 2 of the cloud of the US government",
			claims("https://login.microsoftonline.us/ab1f708d-50f6-404c-a006-d71b2ac7a606/v2.0", service, now, now+60), nil, true,
		},
		{"audience of the account in China", claims(tenant, "https://devstoreaccount1.table.core.chinacloudapi.cn/", now, now+60), nil, true},
		{"audience of the account of the US government", claims(tenant, "https://devstoreaccount1.table.core.usgovcloudapi.net", now, now+60), nil, true},
		{"audience of another account in China", claims(tenant, "https://other.table.core.chinacloudapi.cn", now, now+60), nil, false},
		{"audience of another domain", claims(tenant, "https://devstoreaccount1.table.core.example.com", now, now+60), nil, false},
		{"audience of the account without its domain", claims(tenant, "https://devstoreaccount1.table.core.", now, now+60), nil, false},
		{"issuer of neither version", claims("https://login.microsoftonline.com/ab1f708d-50f6-404c-a006-d71b2ac7a606/", service, now, now+60), nil, false},
		{"issuer without tenant", claims("https://sts.windows.net/common/", service, now, now+60), nil, false},
		{"issuer without its slash", claims(strings.TrimSuffix(tenant, "/"), service, now, now+60), nil, false},
		{"tenant with an invalid digit", claims("https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a60g/", service, now, now+60), nil, false},
		{"tenant with more digits", claims("https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606a/", service, now, now+60), nil, false},
		{"tenant without dashes", claims("https://sts.windows.net/ab1f708d050f60404c0a0060d71b2ac7a606/", service, now, now+60), nil, false},
		{"issuer that is a tenant alone", claims("ab1f708d-50f6-404c-a006-d71b2ac7a606/", service, now, now+60), nil, false},
		{"other issuer", claims("https://example.com/"+tenant, service, now, now+60), nil, false},
		{"expired within the leeway", claims(tenant, service, now-600, now-299), nil, true},
		{"expired", claims(tenant, service, now-600, now-300), nil, false},
		{"not yet valid, within the leeway", claims(tenant, service, now+300, now+600), nil, true},
		{"not yet valid", claims(tenant, service, now+301, now+600), nil, false},
		{"no nbf", jwt(head, body, "s"), nil, true},
		{"no expiry", jwt(head, fmt.Sprintf(`{"iss":%q,"aud":%q}`, tenant, service), "s"), nil, false},
		{"expiry that is text", jwt(head, strings.Replace(body, `"exp":`, `"exp":"x","e":`, 1), "s"), nil, false},
		{"nbf that is text", jwt(head, strings.Replace(body, "}", `,"nbf":"x"}`, 1), "s"), nil, false},
		{"no algorithm", jwt(`{"typ":"JWT"}`, body, "s"), nil, false},
		{"header that is not JSON", jwt("{", body, "s"), nil, false},
		{"claims that are not JSON", jwt(head, body[1:], "s"), nil, false},
		{"no signature", jwt(head, body, ""), nil, false},
		{"two parts", jwt(head, body), nil, false},
		{"four parts", jwt(head, body, "s", "t"), nil, false},
		{"padding", good + "==", nil, false},
		{"empty", "", nil, false},
		{"longest", good + strings.Repeat("A", maxTokenBytes-len(good)), nil, true},
		{"too long", good + strings.Repeat("A", maxTokenBytes-len(good)+4), nil, false},
		{"dots", strings.Repeat(".", 1<<20), nil, false},
		{"a megabyte", strings.Repeat("A", 1<<20), nil, false},
		{"not TLS", good, func(_ *Verifier, r *Request) { r.TLS = false }, false},
		{"OAuth off", good, func(v *Verifier, _ *Request) { v.OAuth = false }, false},
		{"unknown account", good, func(_ *Verifier, r *Request) { r.Account = "nobody" }, false},
		{"old protocol", good, func(_ *Verifier, r *Request) { r.Header.Set("X-Ms-Version", "2017-04-17") }, false},
		{"new protocol", good, func(_ *Verifier, r *Request) { r.Header.Set("X-Ms-Version", "2017-11-09") }, true},
		{"expired, with a challenge", claims(tenant, service, now-600, now-300), func(_ *Verifier, r *Request) { r.Header.Set("X-Ms-Version", "2019-12-12") }, false},
		{"OAuth off, without a challenge", good, func(v *Verifier, r *Request) {
			v.OAuth = false
			r.Header.Set("X-Ms-Version", "2019-12-12")
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, r := verifier(t), request("GET", "/Tables", "")
			v.OAuth, r.TLS = true, true
			r.Header.Set("Authorization", "Bearer "+c.token)
			if c.change != nil {
				c.change(v, r)
			}
			g, err := verify(v, r)
			if !c.ok {
				want := refusedAuthentication
				if strings.HasSuffix(c.name, "with a challenge") {
					want = refusedToken
				}
				wantRefusal(t, err, want)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Allow(CreateTable, "T"); err != nil {
				t.Error(err)
			}
			if r, bounded := g.Bounds(); bounded {
				t.Errorf("the grant has the bounds %+v", r)
			}
		})
	}
}
