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
	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/server/internal/metadata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

// reserved returns how many bytes of b are reserved. Nothing else may use b meanwhile.
func reserved(b *memory.Budget) int64 {
	free := int64(0)
	for step := int64(memory.MaxBytes); step > 0; step /= 2 {
		if b.ReserveBody(step) {
			free += step
		}
	}
	b.Release(free)
	return memory.MaxBytes - free
}

// TestRequestBytes checks the values of Options.RequestBytes, and that bodies have no more.
func TestRequestBytes(t *testing.T) {
	const least = 8 << 20
	o := Options{Accounts: []Account{{Name: "one", Keys: []string{"cGFzc3dvcmQ="}, WeakKeys: true, Store: storetest.NewMap(nil)}}}
	for n, want := range map[int64]int64{-1: 0, least - 1: 0, least: least, 0: memory.MaxBytes} {
		o.RequestBytes = n
		s, err := New(o)
		switch {
		case want == 0:
			if err == nil {
				t.Errorf("%d bytes are accepted", n)
			}
		case err != nil:
			t.Errorf("%d bytes: %v", n, err)
		case !s.inFlight.ReserveBody(want) || s.inFlight.ReserveBody(1):
			t.Errorf("%d bytes: bodies have not %d", n, want)
		}
	}
}

// TestRefusedBodies reads bodies that are too long, or for which no memory is left.
func TestRefusedBodies(t *testing.T) {
	for _, c := range []struct {
		name              string
		bytes             int
		announced, others int64
		err               error
	}{
		{"the longest", memory.MaxBodyBytes, memory.MaxBodyBytes, 0, nil},
		{"too large", memory.MaxBodyBytes + 1, memory.MaxBodyBytes + 1, 0, problem.ErrBodyTooLarge},
		{"too large in chunks", memory.MaxBodyBytes + 1, -1, 0, problem.ErrBodyTooLarge},
		{"without memory", 4, 4, memory.MaxBytes, problem.ErrBusy},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := new(Server)
			s.inFlight.ReserveBody(c.others)
			x := newExchange(s)
			x.w, x.r = httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, c.bytes)))
			x.r.ContentLength = c.announced
			if err := x.readBody(); !errors.Is(err, c.err) || err == nil && len(x.body.Bytes) != c.bytes {
				t.Errorf("read %d bytes, error %v, want %v", len(x.body.Bytes), err, c.err)
			}
			if x.end(); reserved(&s.inFlight) != c.others {
				t.Errorf("after end, %d bytes are reserved, want %d", reserved(&s.inFlight), c.others)
			}
		})
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
		{"large beside others", "large", "", memory.MaxBytes/2 - 1<<20, 0, problem.ErrBusy},
		{"large in a page beside others", "", "PartitionKey eq 'large'", memory.MaxBytes/2 - 1<<20, 0, problem.ErrBusy},
		{"small beside others", "small", "", memory.MaxBytes, 0, nil},
		{"small in a page beside others", "", "PartitionKey eq 'small'", memory.MaxBytes, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &Server{now: systemNow}
			s.inFlight.ReserveBody(c.others)
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
			if used := reserved(&s.inFlight) - c.others; used < c.reserved || c.reserved == 0 && used != 0 {
				t.Errorf("%d bytes are reserved, want %d", used, c.reserved)
			}
			if c.err != nil {
				x.fail(problem.ErrBusy)
				if w.Header().Get("Etag") != "" || cap(x.out.Buf) > 256<<10 {
					t.Errorf("a refusal has the ETag %q, and a buffer of %d bytes", w.Header().Get("Etag"), cap(x.out.Buf))
				}
			}
			x.end()
			if used := reserved(&s.inFlight); used != c.others {
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
	if err := errors.Join(x.out.Hold(100), x.out.Reserve(10)); err != nil {
		t.Fatal(err)
	}
	s.idle.New = func() any { return x }
	func() {
		defer func() { _ = recover() }()
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/acct/Tables", http.NoBody))
	}()
	if used := reserved(&s.inFlight); used != 0 {
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
			if x.out.Buf != nil || x.parser != nil {
				t.Errorf("while the body is read, the request has a buffer of %d bytes and the parser %p", cap(x.out.Buf), x.parser)
			}
			return 0, io.EOF
		})
		x.begin(httptest.NewRecorder(), httptest.NewRequest("POST", "/", body))
		if x.body.Bytes != nil {
			t.Errorf("before the body is read, the request has %d bytes for it", cap(x.body.Bytes))
		}
		if err := x.readBody(); err != nil || !called || cap(x.out.Buf) == 0 {
			t.Errorf("after readBody: error %v, a buffer of %d bytes", err, cap(x.out.Buf))
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
