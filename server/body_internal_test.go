package server

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// half is a body that stops with an error after what came of it.
type half struct{ came *strings.Reader }

func (h half) Read(p []byte) (int, error) {
	n, err := h.came.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBodyTakesMemoryAsItComes reads bodies whose announced length says nothing
// about what comes.
func TestBodyTakesMemoryAsItComes(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for _, c := range []struct {
		name      string
		body      io.Reader
		announced int64
		held      int64 // at most
		err       error
	}{
		{"whole", strings.NewReader(text), int64(len(text)), int64(len(text)) + 1, nil},
		{"in chunks", strings.NewReader(text), -1, 5 * int64(len(text)), nil},
		{"small", strings.NewReader(text[:100]), 100, 101, nil},
		{"empty", strings.NewReader(""), 0, 1, nil},
		{"a byte of much", half{strings.NewReader("x")}, maxBodyBytes, firstBodyBytes + 1, problem.ErrProcessing},
		{"a part of much", half{strings.NewReader(text)}, maxBodyBytes, 5 * int64(len(text)), problem.ErrProcessing},
		{"all there may be", bytes.NewReader(make([]byte, maxBodyBytes)), maxBodyBytes, maxBodyBytes + 1, nil},
		{"too much", bytes.NewReader(make([]byte, maxBodyBytes+1)), maxBodyBytes + 1, 0, problem.ErrBodyTooLarge},
		{"too much in chunks", bytes.NewReader(make([]byte, maxBodyBytes+1)), -1, maxBodyBytes + 1, problem.ErrBodyTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(Server)
			x := newExchange(s)
			x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", c.body)
			x.r.ContentLength = c.announced
			if err := x.readBody(); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if c.err == nil && c.announced > 0 && int64(len(x.body)) != c.announced {
				t.Errorf("%d bytes are read, want %d", len(x.body), c.announced)
			}
			if held := s.inFlight.held.Load(); held > c.held || held != x.held {
				t.Errorf("%d bytes are held, %d by the request, want at most %d", held, x.held, c.held)
			}
		})
	}
}

// TestPagesTakeWhatIsLeft gathers pages while others hold much, little or all.
func TestPagesTakeWhatIsLeft(t *testing.T) {
	for _, c := range []struct {
		held int64
		want int // bytes of the page
	}{
		{0, freePageBytes + (maxPageBytes-freePageBytes+chunkBytes-1)/chunkBytes*chunkBytes},
		{maxPagesBytes - 3*chunkBytes, freePageBytes + 3*chunkBytes},
		{maxPagesBytes, freePageBytes},
		{maxInFlightBytes, freePageBytes},
	} {
		s := new(Server)
		s.inFlight.held.Store(c.held)
		x := newExchange(s)
		limit := freePageBytes
		for x.morePage(&limit) {
			continue
		}
		if limit != c.want || s.inFlight.held.Load() != c.held+int64(limit-freePageBytes) {
			t.Errorf("with %d bytes held, a page has %d, want %d; then %d are held", c.held, limit, c.want, s.inFlight.held.Load())
		}
		w := httptest.NewRecorder()
		x.w, x.r = w, httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		for range x.paged / chunkBytes {
			x.buf = x.chunks.add(append(x.buf, make([]byte, chunkBytes)...))
		}
		if err := x.send(http.StatusOK, ""); err != nil || w.Body.Len() != limit-freePageBytes {
			t.Errorf("%d bytes are sent, want %d; %v", w.Body.Len(), limit-freePageBytes, err)
		}
		if held := s.inFlight.held.Load(); held != c.held {
			t.Errorf("after all is sent, %d bytes are held, want %d", held, c.held)
		}
		x.end()
		if held := s.inFlight.held.Load(); held != c.held {
			t.Errorf("at the end, %d bytes are held, want %d", held, c.held)
		}
	}
}

// TestBusy refuses bodies when others hold what there is, and great pages before
// that.
func TestBusy(t *testing.T) {
	var g gauge
	for g.acquirePage(chunkBytes) {
		continue
	}
	if g.held.Load() != maxPagesBytes || !g.acquire(1) {
		t.Errorf("pages hold %d bytes, want %d and room for bodies", g.held.Load(), maxPagesBytes)
	}
	g.release(1)
	for g.acquire(maxBodyBytes) {
		continue
	}
	if g.held.Load() != maxInFlightBytes || g.acquire(1) {
		t.Errorf("all hold %d bytes, want %d", g.held.Load(), maxInFlightBytes)
	}
	s := new(Server)
	s.inFlight.held.Store(maxInFlightBytes)
	x := newExchange(s)
	x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("text"))
	if err := x.readBody(); !errors.Is(err, problem.ErrBusy) {
		t.Errorf("error %v, want %v", err, problem.ErrBusy)
	}
}

// TestKeptBodiesCount begins bodies in the memory of earlier ones: it is held as
// any other, and small bodies hold no great memory.
func TestKeptBodiesCount(t *testing.T) {
	for _, c := range []struct {
		kept, announced, others int64
		held                    int64
	}{
		{100, 100, 0, 100},
		{firstBodyBytes, 10, 0, firstBodyBytes},
		{100_000, 99_999, 0, 100_000},
		{100_000, 30_000, 0, 100_000},
		{100_000, 20_000, 0, 0},
		{maxKeptBytes, -1, 0, maxKeptBytes},
		{100_000, 99_999, maxInFlightBytes, 0},
	} {
		s := new(Server)
		s.inFlight.held.Store(c.others)
		x := newExchange(s)
		x.body = make([]byte, 0, c.kept)
		x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", half{strings.NewReader("")})
		x.r.ContentLength = c.announced
		_ = x.readBody() // of a body that stops before it begins
		if held := s.inFlight.held.Load() - c.others; held != x.held || held != int64(cap(x.body)) || held < c.held || c.held == 0 && held > firstBodyBytes+1 {
			t.Errorf("of %d kept for a body of %d, with %d held by others: %d are counted, %d by the request, in %d; want %d",
				c.kept, c.announced, c.others, held, x.held, cap(x.body), c.held)
		}
		x.end()
		if held := s.inFlight.held.Load(); held != c.others {
			t.Errorf("at the end, %d are held, want %d", held, c.others)
		}
	}
}

// TestGreatEntitiesCount reads an entity, alone and in a page, that takes more than
// the room that an answer has.
func TestGreatEntitiesCount(t *testing.T) {
	st := storetest.NewMap()
	if err := st.CreateTable(t.Context(), "Things"); err != nil {
		t.Fatal(err)
	}
	great := edm.Properties{}
	for i := range 15 {
		great = append(great, edm.Property{Name: "P" + strconv.Itoa(i), Value: edm.String(strings.Repeat("é", 32_000))})
	}
	for row, properties := range map[string]edm.Properties{"great": great, "small": great[:0]} {
		if _, err := st.Apply(t.Context(), "Things", store.Insert(edm.Entity{Key: edm.Key{Partition: row, Row: "r"}, Properties: properties})); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, partition, filter string
		others, held            int64 // held at least
		err                     error
	}{
		{"great", "great", "", 0, 2 << 20, nil},
		{"great in a page", "", "PartitionKey eq 'great'", 0, 2 << 20, nil},
		{"great beside others", "great", "", maxPagesBytes - 1<<20, 0, problem.ErrBusy},
		{"great in a page beside others", "", "PartitionKey eq 'great'", maxPagesBytes - 1<<20, 0, problem.ErrBusy},
		{"small beside others", "small", "", maxInFlightBytes, 0, nil},
		{"small in a page beside others", "", "PartitionKey eq 'small'", maxInFlightBytes, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Server{now: systemNow}
			s.inFlight.held.Store(c.others)
			x := newExchange(s)
			w := httptest.NewRecorder()
			x.w, x.r, x.account = w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), &account{store: st, properties: newPropertyCache(st)}
			x.target = request.Target{Kind: request.Entity, Table: "Things", Key: edm.Key{Partition: c.partition, Row: "r"}}
			x.query = url.Values{"$filter": {c.filter}}
			read := x.viewEntity
			if c.partition == "" {
				read = x.collectEntities
			}
			if err := read(); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if held := s.inFlight.held.Load() - c.others; held < c.held || c.held == 0 && held != 0 {
				t.Errorf("%d are held, want %d", held, c.held)
			}
			if c.err != nil {
				x.fail(problem.ErrBusy)
				if w.Header().Get("Etag") != "" || cap(x.buf) > maxKeptBytes {
					t.Errorf("a refusal has the ETag %q, and %d bytes of memory", w.Header().Get("Etag"), cap(x.buf))
				}
			}
			x.end()
			if held := s.inFlight.held.Load(); held != c.others {
				t.Errorf("at the end, %d are held, want %d", held, c.others)
			}
		})
	}
}

// TestPanicsHoldNothing ends requests by panics that go on to net/http.
func TestPanicsHoldNothing(t *testing.T) {
	s, err := New(Options{
		Accounts: []Account{{Name: "acct", Keys: []string{strings.Repeat("A", 44)}, WeakKeys: true, Store: storetest.NewMap()}},
		Observe:  func(Event) { panic(http.ErrAbortHandler) },
	})
	if err != nil {
		t.Fatal(err)
	}
	x := newExchange(s)
	x.held, x.paged = 100, 10
	s.inFlight.held.Store(110)
	s.idle.New = func() any { return x }
	func() {
		defer func() { _ = recover() }()
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/acct/Tables", http.NoBody))
	}()
	if held := s.inFlight.held.Load(); held != 0 {
		t.Errorf("%d bytes are held for a request that is over", held)
	}
}

// TestBodiesHoldNoMemory looks at requests while their bodies come and their answers
// go: they have no memory for an answer while a body comes, no parser then and while
// the answer goes, what they need in between, and no body before it comes.
func TestBodiesHoldNoMemory(t *testing.T) {
	x := newExchange(&Server{now: systemNow})
	for range 2 {
		looked := false
		look := readerFunc(func([]byte) (int, error) {
			looked = true
			if x.buf != nil || x.bufOwner != nil || x.parser != nil {
				t.Errorf("a body that comes holds %d bytes for its answer, and the parser %p", cap(x.buf), x.parser)
			}
			return 0, io.EOF
		})
		x.begin(httptest.NewRecorder(), httptest.NewRequest("POST", "/", look))
		if x.body != nil {
			t.Errorf("a request without a body holds %d bytes for one", cap(x.body))
		}
		if err := x.readBody(); err != nil || !looked || cap(x.buf) == 0 {
			t.Errorf("error %v; afterwards there are %d bytes for the answer", err, cap(x.buf))
		}
		if _, err := x.parseEntity([]byte(`{"PartitionKey":"p","RowKey":"r"}`), odata.ParseOptions{}); err != nil || x.parser == nil {
			t.Errorf("error %v; the entity belongs to the parser %p", err, x.parser)
		}
		if err := x.send(http.StatusOK, ""); err != nil || x.parser != nil {
			t.Errorf("error %v; an answer that goes holds the parser %p", err, x.parser)
		}
		x.end()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
