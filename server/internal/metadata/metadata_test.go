package metadata

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/storetest"
)

func TestPolicies(t *testing.T) {
	const whole = "<SignedIdentifier><Id>a</Id><AccessPolicy><Start>2021-06-08</Start><Expiry>2021-06-08T03:10:09Z</Expiry><Permission>rd</Permission>" +
		"</AccessPolicy></SignedIdentifier>"
	const bare = "<SignedIdentifier><Id>b</Id></SignedIdentifier>"
	for _, c := range []struct {
		name, table, doc string
		set, get         error
		want             []sharedkey.Policy
	}{
		{"none", "People", "", nil, nil, nil},
		{
			"two", "People", "<SignedIdentifiers>" + whole + bare + "</SignedIdentifiers>", nil, nil,
			[]sharedkey.Policy{{ID: "a", Start: "2021-06-08T00:00:00.0000000Z", Expiry: "2021-06-08T03:10:09.0000000Z", Permission: "rd"}, {ID: "b"}},
		},
		{"a missing table", "Nobody", "", store.ErrTableNotFound, store.ErrTableNotFound, nil},
		{"an invalid table name", "a", "", store.ErrInvalid, store.ErrTableNotFound, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := storetest.NewMap(nil)
			if err := s.CreateTable(t.Context(), "People"); err != nil {
				t.Fatal(err)
			}
			if err := SetPolicies(t.Context(), s, c.table, []byte(c.doc)); !errors.Is(err, c.set) {
				t.Errorf("set: error %v, want %v", err, c.set)
			}
			got, err := SignaturePolicies(t.Context(), s, c.table)
			if !errors.Is(err, c.get) || !slices.Equal(got, c.want) {
				t.Errorf("for signatures: %+v, error %v; want %+v, error %v", got, err, c.want, c.get)
			}
		})
	}
}

// metaStore counts reads of the account's metadata. Its writes succeed and return setErr.
type metaStore struct {
	store.Store
	reads  int
	setErr error
	getErr error // of AccountMeta
}

func (s *metaStore) AccountMeta(ctx context.Context) ([]byte, error) {
	s.reads++
	if s.getErr != nil {
		return nil, s.getErr
	}
	return s.Store.AccountMeta(ctx)
}

func (s *metaStore) SetAccountMeta(ctx context.Context, meta []byte) error {
	return errors.Join(s.Store.SetAccountMeta(ctx, meta), s.setErr)
}

func TestPropertyCache(t *testing.T) {
	s := &metaStore{Store: storetest.NewMap(nil)}
	now := time.Unix(1, 0)
	cache := NewPropertyCache(s, func() time.Time { return now })
	want := func(days, reads int) {
		t.Helper()
		for range 2 {
			p, err := cache.Get(t.Context())
			if err != nil || p.Logging.RetentionDays != days || s.reads != reads {
				t.Errorf("got %+v after %d reads, error %v; want %d days after %d", p, s.reads, err, days, reads)
			}
		}
	}
	merge := func(days string) error {
		return cache.Merge(t.Context(), []byte("<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>"+
			"<RetentionPolicy><Enabled>true</Enabled><Days>"+days+"</Days></RetentionPolicy></Logging></StorageServiceProperties>"))
	}
	want(0, 1)
	if err := merge("5"); err != nil {
		t.Error(err)
	}
	want(5, 2)
	var refused *documents.Error
	if err := merge("many"); !errors.As(err, &refused) {
		t.Errorf("an invalid document: error %v, want a *documents.Error", err)
	}
	want(5, 3)
	s.setErr = store.ErrOutcomeUnknown
	if err := merge("7"); !errors.Is(err, s.setErr) {
		t.Errorf("error %v, want %v", err, s.setErr)
	}
	want(7, 5) // the outcome was unknown, so the store was read again
}

// TestPropertyCacheAges reads through a cache while the store is changed by others, and
// while it cannot be reached.
func TestPropertyCacheAges(t *testing.T) {
	s := &metaStore{Store: storetest.NewMap(nil)}
	now := time.Unix(1, 0)
	cache := NewPropertyCache(s, func() time.Time { return now })
	set := func(days int) {
		t.Helper()
		p := documents.Properties{Logging: documents.Logging{RetentionDays: days}}
		if err := s.SetAccountMeta(t.Context(), documents.EncodeProperties(nil, p)); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range []struct {
		after time.Duration
		set   int   // by another server
		err   error // of reads
		days  int
		reads int
		fails error
	}{
		{after: 0, set: 1, days: 1, reads: 1},
		{after: refreshPropertyAge - 1, set: 2, days: 1, reads: 1},
		{after: 1, set: 2, days: 2, reads: 2},
		{after: refreshPropertyAge, set: 3, err: store.ErrUnavailable, days: 2, reads: 3},
		{after: propertyRetry - 1, set: 3, days: 2, reads: 3}, // not again at once
		{after: 1, set: 3, err: store.ErrUnavailable, days: 2, reads: 4},
		{after: maxPropertyAge - refreshPropertyAge - propertyRetry - 1, set: 3, err: store.ErrUnavailable, days: 2, reads: 5},
		{after: propertyRetry, set: 3, err: store.ErrUnavailable, fails: store.ErrUnavailable, reads: 6},
		{after: 0, set: 3, fails: store.ErrUnavailable, reads: 6},
		{after: propertyRetry, set: 3, days: 3, reads: 7},
		{after: time.Hour, set: 4, days: 4, reads: 8},
	} {
		set(step.set)
		now, s.getErr = now.Add(step.after), step.err
		p, err := cache.Get(t.Context())
		if !errors.Is(err, step.fails) || err == nil && p.Logging.RetentionDays != step.days || s.reads != step.reads {
			t.Errorf("step %d: got %+v after %d reads, error %v; want %d days after %d, error %v", i, p, s.reads, err, step.days, step.reads, step.fails)
		}
	}
}

// TestPropertyCacheOfClientGone reads with a ctx that has ended. Its error is not that of
// other requests.
func TestPropertyCacheOfClientGone(t *testing.T) {
	s := &metaStore{Store: storetest.NewMap(nil)}
	now := time.Unix(1, 0)
	cache := NewPropertyCache(s, func() time.Time { return now })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cache.Get(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	if _, err := cache.Get(t.Context()); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

// heldStore does not return from AccountMeta before release is closed.
type heldStore struct {
	store.Store
	reading, release chan struct{}
}

func (s *heldStore) AccountMeta(ctx context.Context) ([]byte, error) {
	close(s.reading)
	<-s.release
	return s.Store.AccountMeta(ctx)
}

// TestPropertyCacheWaits asks for properties, and changes them, while another request reads
// them from a store that does not return. Each wait must end with its ctx.
func TestPropertyCacheWaits(t *testing.T) {
	s := &heldStore{storetest.NewMap(nil), make(chan struct{}), make(chan struct{})}
	cache := NewPropertyCache(s, time.Now)
	first := make(chan error)
	go func() {
		_, err := cache.Get(t.Context())
		first <- err
	}()
	<-s.reading
	for name, wait := range map[string]func(context.Context) error{
		"get":   func(ctx context.Context) error { _, err := cache.Get(ctx); return err },
		"merge": func(ctx context.Context) error { return cache.Merge(ctx, nil) },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- wait(ctx) }()
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: error %v, want %v", name, err, context.Canceled)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s did not return when its ctx ended", name)
		}
	}
	close(s.release)
	if err := <-first; err != nil {
		t.Errorf("the request that reads: %v", err)
	}
}
