package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/store"
)

// propertyCache caches the stored service properties of an account, so that a request
// gets its CORS rules without reading the store. The server must be the only one that
// sets the metadata of its accounts. Methods may be called concurrently.
type propertyCache struct {
	store  store.Store
	cached atomic.Pointer[documents.Properties] // nil until the store was read

	// mu is held from reading or writing the store until cached is set, so that cached
	// cannot be older than the store. get locks it only if nothing is cached.
	mu sync.Mutex
}

// newPropertyCache returns a cache of the properties in s. It does not read them yet.
func newPropertyCache(s store.Store) *propertyCache { return &propertyCache{store: s} }

// get returns the properties. Do not modify them.
func (c *propertyCache) get(ctx context.Context) (*documents.Properties, error) {
	if p := c.cached.Load(); p != nil {
		return p, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked(ctx)
}

// +checklocks:c.mu
func (c *propertyCache) readLocked(ctx context.Context) (*documents.Properties, error) {
	if p := c.cached.Load(); p != nil {
		return p, nil
	}
	meta, err := c.store.AccountMeta(ctx)
	if err != nil {
		return nil, err
	}
	p, err := documents.DecodeProperties(meta)
	if err != nil {
		return nil, err
	}
	c.cached.Store(&p)
	return &p, nil
}

// merge changes the sections that a client's document has. It refuses a document that is
// not valid with a *documents.Error.
func (c *propertyCache) merge(ctx context.Context, doc []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.readLocked(ctx)
	if err != nil {
		return err
	}
	p, err := documents.MergeProperties(*old, doc)
	if err != nil {
		return err
	}
	if err := c.store.SetAccountMeta(ctx, documents.EncodeProperties(nil, p)); err != nil {
		c.cached.Store(nil) // the outcome may be unknown: read the store again
		return err
	}
	c.cached.Store(&p)
	return nil
}
