package metadata

import (
	"context"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/store"
)

// Other servers of the same account change its properties, and at most 30 s later all
// servers have the change.
const (
	// maxPropertyAge is how long properties are used. Requests read them again before.
	maxPropertyAge = 25 * time.Second
	// refreshPropertyAge is the age at which one request reads the properties again, while
	// others use the old ones.
	refreshPropertyAge = 10 * time.Second
	// propertyRetry is the time after a failed read until the next one, so that requests do
	// not wait one after the other for a store that cannot be reached.
	propertyRetry = time.Second
)

// PropertyCache caches the stored service properties of an account, so that a request
// gets its CORS rules without reading the store. Methods may be called concurrently.
type PropertyCache struct {
	store  store.Store
	now    func() time.Time
	cached atomic.Pointer[cachedProperties] // nil until the store was read

	refreshing atomic.Bool // a request reads the properties again before they are too old

	// locked has an element from reading or writing the store until cached is set, so that
	// cached cannot be older than what this server has written. It is no mutex, because a
	// request waits no longer than its ctx for a store that does not respond.
	locked chan struct{}
	err    error     // of the last read, nil if it succeeded; while locked
	failed time.Time // of err; while locked
}

// cachedProperties do not change.
type cachedProperties struct {
	documents.Properties
	read time.Time // not later than the read of the store
}

// within reports whether the properties are younger than age.
func (p *cachedProperties) within(age time.Duration, now time.Time) bool {
	return p != nil && now.Sub(p.read) < age
}

// NewPropertyCache returns a cache of the properties in s. It does not read them yet.
func NewPropertyCache(s store.Store, now func() time.Time) *PropertyCache {
	return &PropertyCache{store: s, now: now, locked: make(chan struct{}, 1)}
}

// Of reports whether the cache is of s. Values that cannot be compared are different stores.
func (c *PropertyCache) Of(s store.Store) bool {
	return reflect.ValueOf(c.store).Comparable() && c.store == s
}

// lock locks the cache for a request. Its error is that of ctx.
func (c *PropertyCache) lock(ctx context.Context) error {
	select {
	case c.locked <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *PropertyCache) unlock() { <-c.locked }

// Get returns the properties. Do not modify them.
func (c *PropertyCache) Get(ctx context.Context) (*documents.Properties, error) {
	p, now := c.cached.Load(), c.now()
	if p.within(refreshPropertyAge, now) {
		return &p.Properties, nil
	}
	if p.within(maxPropertyAge, now) {
		if c.refreshing.CompareAndSwap(false, true) {
			defer c.refreshing.Store(false)
			if fresh, err := c.current(ctx); err == nil {
				return fresh, nil
			}
		}
		return &p.Properties, nil
	}
	return c.current(ctx)
}

// current returns the properties that another request has read meanwhile, or reads them. It
// repeats the error of a read that failed a moment ago.
func (c *PropertyCache) current(ctx context.Context) (*documents.Properties, error) {
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()
	now := c.now()
	if p := c.cached.Load(); p.within(refreshPropertyAge, now) {
		return &p.Properties, nil
	}
	if c.err != nil && now.Sub(c.failed) < propertyRetry {
		return nil, c.err
	}
	return c.readLocked(ctx)
}

// readLocked reads the properties from the store.
func (c *PropertyCache) readLocked(ctx context.Context) (*documents.Properties, error) {
	p := &cachedProperties{read: c.now()}
	meta, err := c.store.AccountMeta(ctx)
	if err == nil {
		p.Properties, err = documents.DecodeProperties(meta)
	}
	if err != nil {
		if ctx.Err() == nil { // else the error is of this request alone
			c.err, c.failed = err, c.now()
		}
		return nil, err
	}
	c.err = nil
	c.cached.Store(p)
	return &p.Properties, nil
}

// Merge changes the sections that a client's document has. It refuses a document that is
// not valid with a *documents.Error. Of two servers that change different
// sections at the same moment, one can undo the change of the other.
func (c *PropertyCache) Merge(ctx context.Context, doc []byte) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	old, err := c.readLocked(ctx) // another server may have changed other sections
	if err != nil {
		return err
	}
	p := &cachedProperties{read: c.now()}
	if p.Properties, err = documents.MergeProperties(*old, doc); err != nil {
		return err
	}
	if err := c.store.SetAccountMeta(ctx, documents.EncodeProperties(nil, p.Properties)); err != nil {
		c.cached.Store(nil) // the outcome may be unknown: read the store again
		return err
	}
	c.cached.Store(p)
	return nil
}
