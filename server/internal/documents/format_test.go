package documents

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/cors"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

func somePolicies() []Policy {
	return []Policy{
		{ID: "p1", Start: day(2021, 6, 8), Expiry: time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC), Permission: "raud"},
		{ID: "\u00e9 & \U0001f600", Start: day(1601, 1, 1)},
		{ID: "bare"},
	}
}

// TestGolden compares the stored forms with golden files, which are never changed. Write
// those of a new version by go test ./server/internal/documents -run Golden -update.
func TestGolden(t *testing.T) {
	for _, c := range []struct {
		file   string
		bytes  []byte
		decode func([]byte) (any, error)
		want   any
	}{
		{"testdata/policies-v1", EncodePolicies(nil, somePolicies()), func(b []byte) (any, error) { return DecodePolicies(b) }, somePolicies()},
		{"testdata/properties-v1", EncodeProperties(nil, full()), func(b []byte) (any, error) { return DecodeProperties(b) }, full()},
	} {
		if *update {
			if err := os.WriteFile(c.file, c.bytes, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(c.file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(c.bytes, golden) {
			t.Errorf("%s: got\n%s, want\n%s", c.file, hex.Dump(c.bytes), hex.Dump(golden))
		}
		if got, err := c.decode(golden); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v, %v\nwant %+v", c.file, got, err, c.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	if got := EncodePolicies([]byte("x"), nil); string(got) != "x" {
		t.Errorf("no policies: got %q, want nothing appended", got)
	}
	if got, err := DecodePolicies(nil); got != nil || err != nil {
		t.Errorf("no bytes: got %v, %v; want no policies", got, err)
	}
	if got, err := DecodeProperties(nil); !reflect.DeepEqual(got, Properties{}) || err != nil {
		t.Errorf("no bytes: got %v, %v; want the defaults", got, err)
	}
	zero := EncodeProperties([]byte("x"), Properties{})
	if got, err := DecodeProperties(zero[1:]); !reflect.DeepEqual(got, Properties{}) || err != nil {
		t.Errorf("%x: got %v, %v; want the defaults", zero[1:], got, err)
	}
}

// TestDamage flips each bit, truncates at each length and appends a byte.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		bytes  []byte
		decode func([]byte) error
	}{
		{"policies", EncodePolicies(nil, somePolicies()), func(b []byte) error { _, err := DecodePolicies(b); return err }},
		{"properties", EncodeProperties(nil, full()), func(b []byte) error { _, err := DecodeProperties(b); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := func(b []byte, sentinel error, what string, at int) {
				t.Helper()
				if err := c.decode(b); !errors.Is(err, sentinel) || refused(err) {
					t.Errorf("%s at %d: got %v, want %v", what, at, err, sentinel)
				}
			}
			for i := range c.bytes {
				for bit := range 8 {
					changed := bytes.Clone(c.bytes)
					changed[i] ^= 1 << bit
					want(changed, ErrStored, "flipped bit", i)
				}
				if i > 0 {
					want(c.bytes[:i], ErrStored, "truncated", i)
				}
			}
			want(append(bytes.Clone(c.bytes), 0), ErrStored, "appended byte", len(c.bytes))

			// Bytes that were never encoded, with a valid checksum.
			body := c.bytes[:len(c.bytes)-sumBytes]
			for n := headBytes; n < len(body); n++ {
				want(appendSum(bytes.Clone(body[:n]), 0), ErrStored, "truncated, with checksum", n)
			}
			want(appendSum(append(bytes.Clone(body), 0), 0), ErrStored, "appended byte, with checksum", len(body))
			for version, sentinel := range map[byte]error{0: ErrStored, formatVersion + 1: ErrStoredVersion, 255: ErrStoredVersion} {
				changed := bytes.Clone(body)
				changed[4] = version
				want(appendSum(changed, 0), sentinel, "version", int(version))
			}
			changed := bytes.Clone(body)
			changed[0]++
			want(appendSum(changed, 0), ErrStored, "magic", 0)
		})
	}
}

// TestInvalidFields decodes fields that break a rule, with a valid checksum.
func TestInvalidFields(t *testing.T) {
	policies := func(p ...Policy) []byte { return EncodePolicies(nil, p) }
	changed := func(f func(*Properties)) []byte {
		p := full()
		f(&p)
		return EncodeProperties(nil, p)
	}
	late := policies(Policy{ID: "a", Start: endTime})
	for name, src := range map[string][]byte{
		"no policy":            appendSum(append(appendHead(nil, policiesMagic), 0), 0),
		"six policies":         policies(make([]Policy, 6)...),
		"no Id":                policies(Policy{}),
		"Id that is not UTF-8": policies(Policy{ID: "\xff"}),
		"Id with control":      policies(Policy{ID: "\x01"}),
		"Id twice":             policies(Policy{ID: "a"}, Policy{ID: "a"}),
		"permission":           policies(Policy{ID: "a", Permission: "x"}),
		"time after the last":  late,
	} {
		if got, err := DecodePolicies(src); !errors.Is(err, ErrStored) || refused(err) {
			t.Errorf("%s: %x: got %v, %v; want ErrStored", name, src, got, err)
		}
	}
	highBit := EncodeProperties(nil, Properties{})
	highBit[headBytes] |= 1 << 7
	for name, src := range map[string][]byte{
		"unknown flag":       appendSum(highBit[:len(highBit)-sumBytes], 0),
		"days":               changed(func(p *Properties) { p.HourMetrics.RetentionDays = maxRetentionDays + 1 }),
		"APIs of no hours":   changed(func(p *Properties) { p.HourMetrics.Enabled = false }),
		"APIs of no minutes": changed(func(p *Properties) { p.MinuteMetrics.IncludeAPIs = true }),
		"six rules":          changed(func(p *Properties) { p.Cors = make([]cors.Rule, cors.MaxRules+1) }),
		"age":                changed(func(p *Properties) { p.Cors[0].MaxAge = -1 }),
		"method":             changed(func(p *Properties) { p.Cors[0].AllowedMethods = []string{"FETCH"} }),
		"two origins in one": changed(func(p *Properties) { p.Cors[0].AllowedOrigins = []string{"a,b"} }),
		"empty header":       changed(func(p *Properties) { p.Cors[0].AllowedHeaders = []string{""} }),
	} {
		if got, err := DecodeProperties(src); !errors.Is(err, ErrStored) || refused(err) {
			t.Errorf("%s: %x: got %v, %v; want ErrStored", name, src, got, err)
		}
	}
}
