package sharedkey

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

const (
	maxTokenBytes = 16 << 10
	bearerLeeway  = 5 * time.Minute
)

// claims holds the claims of a JSON Web Token that are checked.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  string   `json:"aud"`
	NotBefore float64  `json:"nbf"`
	Expiry    *float64 `json:"exp"`
}

// verifyBearer checks the format, times, issuer and audience of a token. It does not
// check the signature: anyone who can create a token has full access to the account.
func (v *Verifier) verifyBearer(r *Request, token string) (Grant, error) {
	version, _ := r.header("X-Ms-Version")
	tooOld := version != "" && version < versionBearer
	if !v.OAuth || !r.TLS || tooOld || v.Keys(r.Account) == nil {
		return Grant{}, refusedAuthentication
	}
	c, ok := parseToken(token)
	if !ok || !c.validAt(v.Now()) || !issuedByDirectory(c.Issuer) || !forAccount(c.Audience, r.Account) {
		if r.getsChallenge() {
			return Grant{}, refusedToken
		}
		return Grant{}, refusedAuthentication
	}
	return Grant{kind: byBearer}, nil
}

// parseToken parses the three parts of a signed token.
func parseToken(token string) (c claims, ok bool) {
	if len(token) > maxTokenBytes {
		return c, false
	}
	parts := strings.SplitN(token, ".", 4)
	if len(parts) != 3 {
		return c, false
	}
	var decoded [3][]byte
	for i, part := range parts {
		var err error
		if decoded[i], err = base64.RawURLEncoding.DecodeString(part); err != nil || len(decoded[i]) == 0 {
			return c, false
		}
	}
	var header struct {
		Algorithm string `json:"alg"`
	}
	if json.Unmarshal(decoded[0], &header) != nil || header.Algorithm == "" {
		return c, false
	}
	return c, json.Unmarshal(decoded[1], &c) == nil
}

func (c *claims) validAt(now time.Time) bool {
	if c.Expiry == nil {
		return false
	}
	seconds, leeway := float64(now.Unix()), bearerLeeway.Seconds()
	return seconds+leeway >= c.NotBefore && seconds-leeway < *c.Expiry
}

// issuedByDirectory reports whether issuer is a directory tenant of one of the clouds, in
// the format of version 1 or 2.
func issuedByDirectory(issuer string) bool {
	for _, form := range [...]struct{ before, after string }{
		{"https://sts.windows.net/", "/"},
		{"https://sts.chinacloudapi.cn/", "/"},
		{"https://login.microsoftonline.com/", "/v2.0"},
		{"https://login.microsoftonline.us/", "/v2.0"},
		{"https://login.partner.microsoftonline.cn/", "/v2.0"},
	} {
		id, begins := strings.CutPrefix(issuer, form.before)
		id, ends := strings.CutSuffix(id, form.after)
		if begins && ends && isGUID(id) {
			return true
		}
	}
	return false
}

// isGUID reports whether text consists of hexadecimal digits in groups of 8, 4, 4, 4
// and 12.
func isGUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		switch i {
		case 8, 13, 18, 23:
			if text[i] != '-' {
				return false
			}
		default:
			if hexDigit(text[i]) > 15 {
				return false
			}
		}
	}
	return true
}

// storageID is the id of the storage service as an application of the directory.
const storageID = "e406a681-f3d4-42a8-90b6-c2b029497af1"

// forAccount reports whether audience is the storage service or the table endpoint
// of the account in one of the clouds.
func forAccount(audience, account string) bool {
	audience = strings.TrimSuffix(audience, "/")
	if domain, of := strings.CutPrefix(audience, "https://"+account+".table.core."); of {
		return domain == "windows.net" || domain == "chinacloudapi.cn" || domain == "usgovcloudapi.net"
	}
	return audience == "https://storage.azure.com" || audience == storageID
}
