package local

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// TestServerEnds ends the server of a directory while a command uses it, and leaves the socket as
// a kill does. The errors name the directory, and not what stands for them in a URL
// or a file that is not used.
func TestServerEnds(t *testing.T) {
	dir := t.TempDir()
	l, err := Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"value":[]}`)
	})}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l.Listener) }()
	c, err := Open(t.Context(), dir, "shop", t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	_, applied := c.Apply(t.Context(), "People", store.Insert(edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}))
	_, listed := c.Tables(t.Context(), "", 0)
	for what, err := range map[string]error{"Apply": applied, "Tables": listed} {
		if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "the server that has "+dir+": dial ") {
			t.Errorf("%s: %v, want ErrUnavailable with the directory", what, err)
		}
		for _, other := range []string{"http://", tokenName} {
			if strings.Contains(err.Error(), other) {
				t.Errorf("%s: the error has %q: %v", what, other, err)
			}
		}
	}
}
