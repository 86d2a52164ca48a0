package odata_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// TestParseDoubles compares the parsed values of random decimal numbers with the
// standard library's.
func TestParseDoubles(t *testing.T) {
	const seed = 13
	r := rand.New(rand.NewPCG(seed, seed))
	texts := []string{
		"0", "-0", "-0.0", "0.", ".0", "-.5", "+1.5", "00012.50", "0000000000000000.5", "999999999999999", "1000000000000000",
		".000000000000001", "1.5e3", "1.5E-30",
	}
	for range 200_000 {
		text := []byte(strconv.FormatUint(r.Uint64()>>r.IntN(64), 10))
		if at := r.IntN(2 * len(text)); at <= len(text) {
			text = fmt.Appendf(nil, "%s.%s", text[:at], text[at:])
		}
		if r.IntN(4) == 0 {
			text = append([]byte("-"), text...)
		}
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		got, err := odata.ParseValue(edm.TypeDouble, []byte(text))
		want, wantErr := strconv.ParseFloat(text, 64)
		if err != nil || wantErr != nil || !got.Equal(edm.Double(want)) {
			t.Fatalf("seed %d: %q parses as %v, %v, want %v, %v\nrerun: go test ./internal/odata -run '^TestParseDoubles$'", seed, text, got, err, want, wantErr)
		}
	}
	for _, text := range []string{"", "-", ".", "-.", "--1", "1-", "1..2", "1.2.3", "1 ", "x", "1x", "1e", "1e+", "0x1", "1_0", "\xb1"} {
		if got, err := odata.ParseValue(edm.TypeDouble, []byte(text)); err == nil {
			t.Errorf("%q parses as %v, want an error", text, got)
		}
	}
}

// TestParseGuids puts every byte at every position of a Guid.
func TestParseGuids(t *testing.T) {
	const plain = "01234567-89ab-cdef-FEDC-BA9876543210"
	want := edm.GuidWords(0x0123456789abcdef, 0xfedcba9876543210)
	if got, err := odata.ParseValue(edm.TypeGuid, []byte(plain)); err != nil || got.Word() != want.Word() || got.Word2() != want.Word2() {
		t.Errorf("%s parses as %v, %v, want %v", plain, got, err, want)
	}
	for i := range len(plain) {
		for c := range 256 {
			text := []byte(plain)
			text[i] = byte(c)
			_, isHex := strconv.ParseUint(string(rune(c)), 16, 8)
			valid := isHex == nil && c < 0x80
			if plain[i] == '-' {
				valid = c == '-'
			}
			if got, err := odata.ParseValue(edm.TypeGuid, text); (err == nil) != valid {
				t.Errorf("%q parses as %v, %v, want an error: %t", text, got, err, !valid)
			}
		}
	}
}
