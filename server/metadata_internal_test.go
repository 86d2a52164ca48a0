package server

import (
	"context"
	"errors"
	"slices"
	"testing"

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
			if err := setTablePolicies(t.Context(), s, c.table, []byte(c.doc)); !errors.Is(err, c.set) {
				t.Errorf("set: error %v, want %v", err, c.set)
			}
			got, err := signaturePolicies(t.Context(), s, c.table)
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
}

func (s *metaStore) AccountMeta(ctx context.Context) ([]byte, error) {
	s.reads++
	return s.Store.AccountMeta(ctx)
}

func (s *metaStore) SetAccountMeta(ctx context.Context, meta []byte) error {
	return errors.Join(s.Store.SetAccountMeta(ctx, meta), s.setErr)
}

func TestPropertyCache(t *testing.T) {
	s := &metaStore{Store: storetest.NewMap(nil)}
	cache := newPropertyCache(s)
	want := func(days, reads int) {
		t.Helper()
		for range 2 {
			p, err := cache.get(t.Context())
			if err != nil || p.Logging.RetentionDays != days || s.reads != reads {
				t.Errorf("got %+v after %d reads, error %v; want %d days after %d", p, s.reads, err, days, reads)
			}
		}
	}
	merge := func(days string) error {
		return cache.merge(t.Context(), []byte("<StorageServiceProperties><Logging><Version>1.0</Version><Read>true</Read><Write>true</Write><Delete>true</Delete>"+
			"<RetentionPolicy><Enabled>true</Enabled><Days>"+days+"</Days></RetentionPolicy></Logging></StorageServiceProperties>"))
	}
	want(0, 1)
	if err := merge("5"); err != nil {
		t.Error(err)
	}
	want(5, 1)
	var refused *documents.Error
	if err := merge("many"); !errors.As(err, &refused) {
		t.Errorf("an invalid document: error %v, want a *documents.Error", err)
	}
	want(5, 1)
	s.setErr = store.ErrOutcomeUnknown
	if err := merge("7"); !errors.Is(err, s.setErr) {
		t.Errorf("error %v, want %v", err, s.setErr)
	}
	want(7, 2) // the outcome was unknown, so the store was read again
}
