package server

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/store"
)

// propertyCache holds the service properties of an account as they are stored,
// so that a request learns its CORS rules without the store. That needs the
// server to be the only one that sets the metadata of its accounts.
type propertyCache struct {
	store  store.Store
	cached atomic.Pointer[documents.Properties] // nil until they were read

	// mu is cached from reading the store to changing cached, which otherwise could
	// fall behind the store. Only a request that finds nothing cached waits for it.
	mu sync.Mutex
}

// newPropertyCache returns a cache of what s has, all of whose methods may be called
// concurrently. It reads nothing yet.
func newPropertyCache(s store.Store) *propertyCache { return &propertyCache{store: s} }

// get returns the properties, which are not to be changed.
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

// merge changes the sections that a client's document has. A document that is none
// is refused with a *documents.Error.
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
		c.cached.Store(nil) // what is stored may be either
		return err
	}
	c.cached.Store(&p)
	return nil
}
