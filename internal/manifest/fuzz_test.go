package manifest

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// FuzzManifest decodes arbitrary bytes. Accepted bytes are the encoding of the result;
// errors are of the documented kinds. With sums, it first corrects length and sum.
func FuzzManifest(f *testing.F) {
	f.Add(mustEncode(f, sample()), false)
	f.Add(mustEncode(f, second()), true)
	f.Add(mustEncode(f, &Manifest{NextFile: 1}), true)
	for _, name := range []string{"testdata/manifest-v1", "testdata/manifest-v2", "testdata/manifest-v3-unstamped"} {
		old, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(old, false)
	}
	f.Add([]byte(magic), false)
	f.Fuzz(func(t *testing.T, b []byte, sums bool) {
		if sums && len(b) >= headLen2+sumLen {
			b = bytes.Clone(b)
			copy(b[16:24], []byte{byte(len(b)), byte(len(b) >> 8), byte(len(b) >> 16), 0, 0, 0, 0, 0})
			fixSum(b)
		}
		m, err := decode(b)
		if err != nil {
			if m != nil || errors.Is(err, corrupt.ErrCorrupt) == errors.Is(err, ErrNewerFormat) {
				t.Fatalf("got %+v, %v", m, err)
			}
			return
		}
		if m.Version < version || int64(len(b)) < encodedLen(m) { // of an earlier build
			m.Version = version
			b = mustEncode(t, m)
			if m, err = decode(b); err != nil {
				t.Fatal(err)
			}
		}
		again, err := encode(m)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded as %+v and encoded as %x, %v", b, m, again, err)
		}
	})
}
