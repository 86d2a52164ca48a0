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
	"github.com/tablerock-db/tablerock/server/internal/metadata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// brokenBody is a body that fails after its first bytes.
type brokenBody struct{ first *strings.Reader }

func (b brokenBody) Read(p []byte) (int, error) {
	n, err := b.first.Read(p)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// TestBodyMemoryFollowsContent reads bodies that are shorter or longer than
// Content-Length, and checks how much memory was reserved.
func TestBodyMemoryFollowsContent(t *testing.T) {
	text := strings.Repeat("0123456789", 10_000)
	for _, c := range []struct {
		name      string
		body      io.Reader
		announced int64
		reserved  int64 // at most
		err       error
	}{
		{"whole", strings.NewReader(text), int64(len(text)), int64(len(text)) + 1, nil},
		{"in chunks", strings.NewReader(text), -1, 5 * int64(len(text)), nil},
		{"small", strings.NewReader(text[:100]), 100, 101, nil},
		{"empty", strings.NewReader(""), 0, 1, nil},
		{"one byte of 4 MiB", brokenBody{strings.NewReader("x")}, maxBodyBytes, firstBodyBytes + 1, problem.ErrProcessing},
		{"the first bytes of 4 MiB", brokenBody{strings.NewReader(text)}, maxBodyBytes, 5 * int64(len(text)), problem.ErrProcessing},
		{"the largest body", bytes.NewReader(make([]byte, maxBodyBytes)), maxBodyBytes, maxBodyBytes + 1, nil},
		{"too large", bytes.NewReader(make([]byte, maxBodyBytes+1)), maxBodyBytes + 1, 0, problem.ErrBodyTooLarge},
		{"too large in chunks", bytes.NewReader(make([]byte, maxBodyBytes+1)), -1, maxBodyBytes + 1, problem.ErrBodyTooLarge},
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
				t.Errorf("read %d bytes, want %d", len(x.body), c.announced)
			}
			if used := s.inFlight.used.Load(); used > c.reserved || used != x.bodyReserved {
				t.Errorf("%d bytes are reserved, %d by the request, want at most %d", used, x.bodyReserved, c.reserved)
			}
		})
	}
}

// TestPageSizeFollowsBudget grows pages while other requests have reserved none, some or
// all of the budget.
func TestPageSizeFollowsBudget(t *testing.T) {
	for _, c := range []struct {
		others int64
		want   int // bytes of the page
	}{
		{0, freePageBytes + (maxPageBytes-freePageBytes+chunkBytes-1)/chunkBytes*chunkBytes},
		{maxPagesBytes - 3*chunkBytes, freePageBytes + 3*chunkBytes},
		{maxPagesBytes, freePageBytes},
		{maxInFlightBytes, freePageBytes},
	} {
		s := new(Server)
		s.inFlight.used.Store(c.others)
		x := newExchange(s)
		limit := freePageBytes
		for x.growPage(&limit) {
			continue
		}
		if limit != c.want || s.inFlight.used.Load() != c.others+int64(limit-freePageBytes) {
			t.Errorf("with %d bytes reserved by others, a page has %d, want %d; in all %d are reserved", c.others, limit, c.want, s.inFlight.used.Load())
		}
		w := httptest.NewRecorder()
		x.w, x.r = w, httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		for range x.pageReserved / chunkBytes {
			x.buf = x.chunks.add(append(x.buf, make([]byte, chunkBytes)...))
		}
		if err := x.send(http.StatusOK, ""); err != nil || w.Body.Len() != limit-freePageBytes {
			t.Errorf("sent %d bytes, want %d; error %v", w.Body.Len(), limit-freePageBytes, err)
		}
		if used := s.inFlight.used.Load(); used != c.others {
			t.Errorf("after send, %d bytes are reserved, want %d", used, c.others)
		}
		x.end()
		if used := s.inFlight.used.Load(); used != c.others {
			t.Errorf("after end, %d bytes are reserved, want %d", used, c.others)
		}
	}
}

// TestBudget exhausts the budget of pages, then that of bodies, and checks that a body
// is refused.
func TestBudget(t *testing.T) {
	var b budget
	for b.reservePage(chunkBytes) {
		continue
	}
	if b.used.Load() != maxPagesBytes || !b.reserveBody(1) {
		t.Errorf("pages reserved %d bytes, want %d, and a body to get more", b.used.Load(), maxPagesBytes)
	}
	b.release(1)
	for b.reserveBody(maxBodyBytes) {
		continue
	}
	if b.used.Load() != maxInFlightBytes || b.reserveBody(1) {
		t.Errorf("%d bytes are reserved, want %d", b.used.Load(), maxInFlightBytes)
	}
	s := new(Server)
	s.inFlight.used.Store(maxInFlightBytes)
	x := newExchange(s)
	x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("text"))
	if err := x.readBody(); !errors.Is(err, problem.ErrBusy) {
		t.Errorf("error %v, want %v", err, problem.ErrBusy)
	}
}

// TestReusedBodies reads bodies into the memory of earlier ones: the request reserves
// that memory, and a small body does not take large memory.
func TestReusedBodies(t *testing.T) {
	for _, c := range []struct {
		kept, announced, others int64
		reserved                int64
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
		s.inFlight.used.Store(c.others)
		x := newExchange(s)
		x.body = make([]byte, 0, c.kept)
		x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", brokenBody{strings.NewReader("")})
		x.r.ContentLength = c.announced
		_ = x.readBody() // fails at the first byte
		used := s.inFlight.used.Load() - c.others
		if used != x.bodyReserved || used != int64(cap(x.body)) || used < c.reserved || c.reserved == 0 && used > firstBodyBytes+1 {
			t.Errorf("%d bytes kept for a body of %d, with %d reserved by others: reserved %d, %d by the request, for %d; want %d",
				c.kept, c.announced, c.others, used, x.bodyReserved, cap(x.body), c.reserved)
		}
		x.end()
		if used := s.inFlight.used.Load(); used != c.others {
			t.Errorf("after end, %d bytes are reserved, want %d", used, c.others)
		}
	}
}

// TestLargeEntitiesReserve reads an entity that exceeds a chunk, alone and in a page.
func TestLargeEntitiesReserve(t *testing.T) {
	st := storetest.NewMap(nil)
	if err := st.CreateTable(t.Context(), "Things"); err != nil {
		t.Fatal(err)
	}
	large := edm.Properties{}
	for i := range 15 {
		large = append(large, edm.Property{Name: "P" + strconv.Itoa(i), Value: edm.String(strings.Repeat("é", 32_000))})
	}
	for row, properties := range map[string]edm.Properties{"large": large, "small": large[:0]} {
		if _, err := st.Apply(t.Context(), "Things", store.Insert(edm.Entity{Key: edm.Key{Partition: row, Row: "r"}, Properties: properties})); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name, partition, filter string
		others, reserved        int64 // reserved at least
		err                     error
	}{
		{"large", "large", "", 0, 2 << 20, nil},
		{"large in a page", "", "PartitionKey eq 'large'", 0, 2 << 20, nil},
		{"large beside others", "large", "", maxPagesBytes - 1<<20, 0, problem.ErrBusy},
		{"large in a page beside others", "", "PartitionKey eq 'large'", maxPagesBytes - 1<<20, 0, problem.ErrBusy},
		{"small beside others", "small", "", maxInFlightBytes, 0, nil},
		{"small in a page beside others", "", "PartitionKey eq 'small'", maxInFlightBytes, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Server{now: systemNow}
			s.inFlight.used.Store(c.others)
			x := newExchange(s)
			w := httptest.NewRecorder()
			x.w, x.r, x.account = w, httptest.NewRequest(http.MethodGet, "/", http.NoBody), &account{store: st, properties: metadata.NewPropertyCache(st, systemNow)}
			x.target = request.Target{Kind: request.Entity, Table: "Things", Key: edm.Key{Partition: c.partition, Row: "r"}}
			x.query = url.Values{"$filter": {c.filter}}
			read := x.viewEntity
			if c.partition == "" {
				read = x.collectEntities
			}
			if err := read(); !errors.Is(err, c.err) {
				t.Errorf("error %v, want %v", err, c.err)
			}
			if used := s.inFlight.used.Load() - c.others; used < c.reserved || c.reserved == 0 && used != 0 {
				t.Errorf("%d bytes are reserved, want %d", used, c.reserved)
			}
			if c.err != nil {
				x.fail(problem.ErrBusy)
				if w.Header().Get("Etag") != "" || cap(x.buf) > maxKeptBytes {
					t.Errorf("a refusal has the ETag %q, and a buffer of %d bytes", w.Header().Get("Etag"), cap(x.buf))
				}
			}
			x.end()
			if used := s.inFlight.used.Load(); used != c.others {
				t.Errorf("after end, %d bytes are reserved, want %d", used, c.others)
			}
		})
	}
}

// TestPanicReleasesMemory ends a request by a panic that reaches net/http.
func TestPanicReleasesMemory(t *testing.T) {
	s, err := New(Options{
		Accounts: []Account{{Name: "acct", Keys: []string{strings.Repeat("A", 44)}, WeakKeys: true, Store: storetest.NewMap(nil)}},
		Observe:  func(Event) { panic(http.ErrAbortHandler) },
	})
	if err != nil {
		t.Fatal(err)
	}
	x := newExchange(s)
	x.bodyReserved, x.pageReserved = 100, 10
	s.inFlight.used.Store(110)
	s.idle.New = func() any { return x }
	func() {
		defer func() { _ = recover() }()
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/acct/Tables", http.NoBody))
	}()
	if used := s.inFlight.used.Load(); used != 0 {
		t.Errorf("after a panic, %d bytes are reserved, want 0", used)
	}
}

// TestIdleRequestsHaveNoBuffers checks which memory a request has while it waits for its
// client: no response buffer and no parser while the body is read, no parser while the
// response is sent, and no body before it is read.
func TestIdleRequestsHaveNoBuffers(t *testing.T) {
	x := newExchange(&Server{now: systemNow})
	for range 2 {
		called := false
		body := readerFunc(func([]byte) (int, error) {
			called = true
			if x.buf != nil || x.bufOwner != nil || x.parser != nil {
				t.Errorf("while the body is read, the request has a buffer of %d bytes and the parser %p", cap(x.buf), x.parser)
			}
			return 0, io.EOF
		})
		x.begin(httptest.NewRecorder(), httptest.NewRequest("POST", "/", body))
		if x.body != nil {
			t.Errorf("before the body is read, the request has %d bytes for it", cap(x.body))
		}
		if err := x.readBody(); err != nil || !called || cap(x.buf) == 0 {
			t.Errorf("after readBody: error %v, a buffer of %d bytes", err, cap(x.buf))
		}
		if err := x.parseEntity(new(edm.Entity), []byte(`{"PartitionKey":"p","RowKey":"r"}`), odata.ParseOptions{}); err != nil || x.parser == nil {
			t.Errorf("after parseEntity: error %v, the parser %p", err, x.parser)
		}
		if err := x.send(http.StatusOK, ""); err != nil || x.parser != nil {
			t.Errorf("after send: error %v, the parser %p", err, x.parser)
		}
		x.end()
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
