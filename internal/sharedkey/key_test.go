package sharedkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestNewKeys(t *testing.T) {
	for _, c := range []struct {
		name string
		keys []string
		ok   bool
	}{
		{"one", []string{key1}, true},
		{"two", []string{key1, key2}, true},
		{"none", nil, false},
		{"three", []string{key1, key2, otherKey}, false},
		{"empty", []string{""}, false},
		{"31 bytes", []string{"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZQ=="}, false},
		{"no padding", []string{strings.TrimRight(key1, "=")}, false},
		{"more padding", []string{key1 + "="}, false},
		{"no base64", []string{key1, "secret*" + key1}, false},
		{"other last bits", []string{strings.Replace(key1, "GMGw==", "GMGx==", 1)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := NewKeys(c.keys...)
			if (err == nil) != c.ok {
				t.Fatalf("error %v", err)
			}
			for _, key := range c.keys {
				if err != nil && key != "" && strings.Contains(err.Error(), key[:6]) {
					t.Errorf("%v shows the key", err)
				}
			}
		})
	}
	if _, err := NewWeakKeys("YQ==", "a2V5MQ=="); err != nil {
		t.Errorf("weak keys: %v", err)
	}
	if _, err := NewWeakKeys(""); err == nil {
		t.Error("NewWeakKeys accepts an empty key")
	}
	if _, err := NewCredential(account, "short"); err == nil {
		t.Error("NewCredential accepts an invalid key")
	}
}

// TestDummyKeysMatchNothing signs requests with the dummy key.
func TestDummyKeysMatchNothing(t *testing.T) {
	zero := &Credential{account, dummyKeys}
	one, err := NewKeys(key1)
	if err != nil {
		t.Fatal(err)
	}
	v := verifier(t)
	for name, keys := range map[string]*Keys{"no account": nil, "account with one key": one} {
		v.Keys = func(string) *Keys { return keys }
		r := request("GET", "/Tables", "")
		r.Header.Set("Authorization", must(t)(zero.SharedKey(r)))
		_, err := verify(v, r)
		t.Run(name, func(t *testing.T) { wantRefusal(t, err, refusedAuthentication) })
	}
}

// TestDecodeSignature decodes base64 of other lengths than that of a signature, and base64
// that Strict refuses after 32 bytes.
func TestDecodeSignature(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 34, 64} {
		_, err := decodeSignature(base64.StdEncoding.EncodeToString(make([]byte, n)))
		if (err == nil) != (n == 32) {
			t.Errorf("%d bytes: error %v", n, err)
		}
	}
	for _, text := range []string{strings.Repeat("A", 42) + "B=", strings.Repeat("A", 43) + "*", strings.Repeat("A", 43)} {
		if _, err := decodeSignature(text); err == nil {
			t.Errorf("%q is a signature", text)
		}
	}
}

func must(t *testing.T) func(string, error) string {
	t.Helper()
	return func(s string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// countingHash counts the computed sums.
type countingHash struct {
	hash.Hash
	n *atomic.Int64
}

func (c countingHash) Sum(b []byte) []byte {
	c.n.Add(1)
	return c.Hash.Sum(b)
}

func countingKeys(n *atomic.Int64, of *Keys) *Keys {
	keys := &Keys{n: of.n}
	for i := range keys.signers {
		s := new(signer)
		s.macs.New = func() any { return &mac{hash: countingHash{hmac.New(sha256.New, []byte(fmt.Sprint("counted", i))), n}} }
		keys.signers[i] = s
	}
	return keys
}

// TestRefusalTime counts computed signatures. The time of a refusal must not reveal
// whether an account has no key, one or two.
func TestRefusalTime(t *testing.T) {
	var n atomic.Int64
	defer func(keys *Keys) { dummyKeys = keys }(dummyKeys)
	dummyKeys = countingKeys(&n, dummyKeys)
	v := verifier(t)
	known := map[string]*Keys{"one": countingKeys(&n, &Keys{n: 1}), "two": countingKeys(&n, &Keys{n: 2})}
	v.Keys = func(name string) *Keys { return known[name] }
	for _, c := range []struct {
		name string
		want int64
		make func(account, signature string) *Request
	}{
		{"full", 2, func(account, signature string) *Request {
			r := request("GET", "/T", "")
			r.Header.Set("Authorization", "SharedKey "+account+":"+signature)
			return r
		}},
		{"two dates, secondary, other escapes", 16, func(account, signature string) *Request {
			r := request("GET", "/"+account+"-secondary/%54", "")
			r.Secondary = true
			r.Header.Set("Date", noon.Add(60e9).Format(http.TimeFormat))
			r.Header.Set("Authorization", "SharedKeyLite "+account+":"+signature)
			return r
		}},
		{"the same date twice", 2, func(account, signature string) *Request {
			r := request("GET", "/T", "")
			r.Header["Date"] = r.Header["X-Ms-Date"]
			r.Header.Set("Authorization", "SharedKey "+account+":"+signature)
			return r
		}},
		{"table SAS", 2, func(_, signature string) *Request {
			return request("GET", "/T", "sv=2019-02-02&tn=T&sp=r&se=2026-03-05&sig="+signature)
		}},
		{"account SAS", 2, func(_, signature string) *Request {
			return request("GET", "/T", "sv=2019-02-02&ss=t&srt=o&sp=r&se=2026-03-05&sig="+signature)
		}},
	} {
		for _, account := range []string{"none", "one", "two"} {
			for _, signature := range []string{"", "x", strings.Repeat("*", 44), strings.Repeat("A", 43) + "=", strings.Repeat("A", 4096)} {
				r := c.make(account, signature)
				r.Account = account
				n.Store(0)
				_, err := verify(v, r)
				wantRefusal(t, err, refusedAuthentication)
				if n.Load() != c.want {
					t.Errorf("%s, account with %s keys, signature %.9q: %d sums, want %d", c.name, account, signature, n.Load(), c.want)
				}
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	v := verifier(t)
	c := credential(t, key1)
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for i := range 200 {
				path := fmt.Sprintf("/T%d/%d", worker, i)
				r := request("GET", path, "")
				a, err := c.SharedKey(r)
				if err != nil {
					t.Error(err)
				}
				r.Header.Set("Authorization", a)
				if _, err := verify(v, r); err != nil {
					t.Errorf("%s: %v", path, err)
				}
				r.Path += "x"
				if _, err := verify(v, r); err == nil {
					t.Errorf("the signature is valid for another path than %s", path)
				}
			}
		})
	}
	all.Wait()
}

func TestIsAccountName(t *testing.T) {
	for name, want := range map[string]bool{
		"abc": true, "devstoreaccount1": true, "123": true, "az09": true, "abcdefghijklmnopqrstuvwx": true,
		"": false, "ab": false, "abcdefghijklmnopqrstuvwxy": false, "Abc": false, "a-c": false, "-abc": false, "abc\n": false, "äbc": false,
		"ab`": false, "ab{": false, "12/": false, "12:": false,
	} {
		if got := IsAccountName(name); got != want {
			t.Errorf("IsAccountName(%q) = %v, want %v", name, got, want)
		}
	}
}
