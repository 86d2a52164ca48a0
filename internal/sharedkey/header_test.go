package sharedkey

import "testing"

func TestBothSchemesAndKeys(t *testing.T) {
	v := verifier(t)
	for _, key := range []string{key1, key2} {
		c := credential(t, key)
		for name, sign := range map[string]func(*Request) (string, error){"full": c.SharedKey, "lite": c.SharedKeyLite} {
			r := request("GET", "/devstoreaccount1/Tables", "comp=acl")
			a, err := sign(r)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", a)
			g, err := verify(v, r)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := g.Allow(ACL, "t"); err != nil {
				t.Fatal(err)
			}
		}
	}
}
