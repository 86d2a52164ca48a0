package errorfs_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/vfs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// env is the file system of one test. Its helpers fail the test on an error.
type env struct {
	*testing.T
	fs vfs.FS
}

func (e *env) ok(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("got error %v", err)
	}
}

func (e *env) fails(err, want error) {
	e.Helper()
	if !errors.Is(err, want) {
		e.Fatalf("got error %v, want %v", err, want)
	}
}

func (e *env) create(name, text string) vfs.File {
	e.Helper()
	f, err := e.fs.Create("/" + name)
	e.ok(err)
	_, err = f.WriteAt([]byte(text), 0)
	e.ok(err)
	return f
}

func (e *env) put(name, text string) {
	e.Helper()
	e.ok(e.create(name, text).Close())
}

func (e *env) want(name, text string) {
	e.Helper()
	got, err := vfs.ReadFile(e.fs, "/"+name, 1<<20)
	e.ok(err)
	if string(got) != text {
		e.Fatalf("%s holds %q, want %q", name, got, text)
	}
}

func (e *env) wantNames(names ...string) {
	e.Helper()
	got, err := e.fs.List("/")
	e.ok(err)
	if !slices.Equal(got, names) {
		e.Fatalf("names are %q, want %q", got, names)
	}
}

// runs prints runs of equal bytes: " A*512 B*88".
func runs(data []byte) string {
	var out strings.Builder
	for len(data) > 0 {
		n := 1
		for n < len(data) && data[n] == data[0] {
			n++
		}
		fmt.Fprintf(&out, " %c*%d", data[0], n)
		data = data[n:]
	}
	return out.String()
}
