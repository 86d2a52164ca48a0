package metadata

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/store"
)

// PropertyCache holds the service properties of an account as they are stored,
// so that a request learns its CORS rules without the store. That needs the
// server to be the only one that sets the metadata of its accounts.
type PropertyCache struct {
	store store.Store
	held  atomic.Pointer[service.Properties] // nil until they were read

	// mu is held from reading the store to changing held, which otherwise could
	// fall behind the store. Only a request that finds nothing held waits for it.
	mu sync.Mutex
}

// NewPropertyCache returns a cache of what s has, all of whose methods may be called
// concurrently. It reads nothing yet.
func NewPropertyCache(s store.Store) *PropertyCache { return &PropertyCache{store: s} }

// Get returns the properties, which are not to be changed.
func (c *PropertyCache) Get(ctx context.Context) (*service.Properties, error) {
	if p := c.held.Load(); p != nil {
		return p, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked(ctx)
}

// +checklocks:c.mu
func (c *PropertyCache) readLocked(ctx context.Context) (*service.Properties, error) {
	if p := c.held.Load(); p != nil {
		return p, nil
	}
	meta, err := c.store.AccountMeta(ctx)
	if err != nil {
		return nil, err
	}
	p, err := service.DecodeProperties(meta)
	if err != nil {
		return nil, err
	}
	c.held.Store(&p)
	return &p, nil
}

// Merge changes the sections that a client's document has. A document that is none
// is refused with a *service.Error.
func (c *PropertyCache) Merge(ctx context.Context, doc []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.readLocked(ctx)
	if err != nil {
		return err
	}
	p, err := service.MergeProperties(*old, doc)
	if err != nil {
		return err
	}
	if err := c.store.SetAccountMeta(ctx, service.EncodeProperties(nil, p)); err != nil {
		c.held.Store(nil) // what is stored may be either
		return err
	}
	c.held.Store(&p)
	return nil
}
