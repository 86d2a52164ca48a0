package documents

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/tablerock-db/tablerock/server/internal/cors"
	"github.com/tablerock-db/tablerock/store"
)

// FuzzPolicies parses its input as a document, and decodes it as stored bytes with and
// without the checksum. Policies must survive a round trip through both forms.
func FuzzPolicies(f *testing.F) {
	f.Add([]byte(acl("<Id>a</Id>", "<Id> &lt;&#13;</Id><AccessPolicy><Expiry>2021-06-08T03:10:09.5+01:00</Expiry><Permission>ra</Permission></AccessPolicy>")))
	f.Add(EncodePolicies(nil, somePolicies()))
	f.Add(withoutSum(EncodePolicies(nil, somePolicies())))
	f.Fuzz(func(t *testing.T, src []byte) {
		given := bytes.Clone(src)
		p, err := ParsePolicies(src)
		if err != nil && !refused(err) || err != nil && p != nil {
			t.Fatalf("ParsePolicies(%q): got %v, %v; want an *Error alone", src, p, err)
		}
		read := [][]Policy{p}
		for _, src := range [][]byte{src, appendSum(bytes.Clone(src), 0)} {
			stored, err := DecodePolicies(src)
			switch {
			case err != nil:
				wantStoredError(t, src, err)
			case !bytes.Equal(EncodePolicies(nil, stored), src):
				t.Fatalf("%x decodes to %v, which encodes to %x", src, stored, EncodePolicies(nil, stored))
			}
			read = append(read, stored)
		}
		if !bytes.Equal(src, given) {
			t.Fatalf("%q was modified to %q", given, src)
		}
		for _, p := range read {
			doc, meta := AppendPolicies(nil, p), EncodePolicies(nil, p)
			if got, err := ParsePolicies(doc); err != nil || !reflect.DeepEqual(got, p) {
				t.Fatalf("%v gives the document %q, which parses to %v, %v", p, doc, got, err)
			}
			if got, err := DecodePolicies(meta); err != nil || !reflect.DeepEqual(got, p) || store.CheckMeta("", len(meta)) != nil {
				t.Fatalf("%v encodes to %x, which decodes to %v, %v", p, meta, got, err)
			}
		}
	})
}

// FuzzProperties is FuzzPolicies for properties.
func FuzzProperties(f *testing.F) {
	f.Add([]byte(properties(loggingOn, metricsOn, "<Cors>"+ruleOne+ruleTwo+"</Cors>")))
	f.Add(EncodeProperties(nil, full()))
	f.Add(withoutSum(EncodeProperties(nil, full())))
	unordered := full()
	unordered.Cors = []cors.Rule{{
		AllowedMethods: []string{"GET"}, AllowedOrigins: []string{"*"}, AllowedHeaders: []string{"x-ms-meta-b*", "x-ms-cd"}, ExposedHeaders: []string{"*", "a"},
	}}
	f.Add(EncodeProperties(nil, unordered))
	f.Fuzz(func(t *testing.T, src []byte) {
		given := bytes.Clone(src)
		p, err := MergeProperties(full(), src)
		if err != nil && !refused(err) {
			t.Fatalf("MergeProperties(%q): got %v, want an *Error", src, err)
		}
		read := []Properties{p}
		for _, src := range [][]byte{src, appendSum(bytes.Clone(src), 0)} {
			stored, err := DecodeProperties(src)
			switch {
			case err != nil:
				wantStoredError(t, src, err)
			case len(src) > 0 && !bytes.Equal(EncodeProperties(nil, stored), src):
				t.Fatalf("%x decodes to %+v, which encodes to %x", src, stored, EncodeProperties(nil, stored))
			}
			read = append(read, stored)
		}
		if !bytes.Equal(src, given) {
			t.Fatalf("%q was modified to %q", given, src)
		}
		for _, p := range read {
			doc, meta := AppendProperties(nil, p), EncodeProperties(nil, p)
			if got, err := MergeProperties(full(), doc); err != nil || !reflect.DeepEqual(got, inOrder(p)) {
				t.Fatalf("%+v gives the document %q, which parses to %+v, %v", p, doc, got, err)
			}
			if got, err := DecodeProperties(meta); err != nil || !reflect.DeepEqual(got, p) || store.CheckMeta("", len(meta)) != nil {
				t.Fatalf("%+v encodes to %x, which decodes to %+v, %v", p, meta, got, err)
			}
		}
	})
}

// inOrder returns p with the headers of its rules in the order of documents.
func inOrder(p Properties) Properties {
	p.Cors = slices.Clone(p.Cors)
	for i := range p.Cors {
		r := &p.Cors[i]
		r.AllowedHeaders, r.ExposedHeaders = returned(r.AllowedHeaders), returned(r.ExposedHeaders)
	}
	return p
}

func withoutSum(stored []byte) []byte { return stored[:len(stored)-sumBytes] }

func wantStoredError(t *testing.T, src []byte, err error) {
	t.Helper()
	if !errors.Is(err, ErrStored) && !errors.Is(err, ErrStoredVersion) || refused(err) {
		t.Fatalf("stored %x: got %v, want ErrStored or ErrStoredVersion", src, err)
	}
}
