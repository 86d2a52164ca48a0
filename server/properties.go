package server

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/store"
)

// propertyCache holds the service properties of an account as they are stored,
// so that a request learns its CORS rules without the store. That needs the
// server to be the only one that sets the metadata of its accounts.
type propertyCache struct {
	held atomic.Pointer[service.Properties] // nil until they were read

	// mu is held from reading the store to changing held, which otherwise could
	// fall behind the store. Only a request that finds nothing held waits for it.
	mu sync.Mutex
}

// get returns the properties, which are not to be changed.
func (c *propertyCache) get(ctx context.Context, s store.Store) (*service.Properties, error) {
	if p := c.held.Load(); p != nil {
		return p, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readLocked(ctx, s)
}

// +checklocks:c.mu
func (c *propertyCache) readLocked(ctx context.Context, s store.Store) (*service.Properties, error) {
	if p := c.held.Load(); p != nil {
		return p, nil
	}
	meta, err := s.AccountMeta(ctx)
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

// merge changes the sections that doc has.
func (c *propertyCache) merge(ctx context.Context, s store.Store, doc []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := c.readLocked(ctx, s)
	if err != nil {
		return err
	}
	p, err := service.MergeProperties(*old, doc)
	if err != nil {
		return err
	}
	if err := s.SetAccountMeta(ctx, service.EncodeProperties(nil, p)); err != nil {
		c.held.Store(nil) // what is stored may be either
		return err
	}
	c.held.Store(&p)
	return nil
}

// serviceProperties is GET /?restype=service&comp=properties.
func (x *exchange) serviceProperties() error {
	p, err := x.account.properties.get(x.r.Context(), x.account.store)
	if err != nil {
		return err
	}
	x.head()
	x.buf = service.AppendProperties(x.buf[:0], *p)
	return x.send(http.StatusOK, applicationXML)
}

// setServiceProperties is PUT /?restype=service&comp=properties.
func (x *exchange) setServiceProperties() error {
	if err := x.readBody(); err != nil {
		return err
	}
	if err := x.account.properties.merge(x.r.Context(), x.account.store, x.body); err != nil {
		return err
	}
	x.head()
	return x.sendEmpty(http.StatusAccepted)
}

const badQueryValue = "Value for one of the query parameters specified in the request URI is invalid."

var (
	// errQueryValue refuses the value of a parameter in the URL.
	errQueryValue = bad("InvalidQueryParameterValue", badQueryValue)
	// errComp refuses a comp that the service has not, or not this resource of it.
	errComp = &problem{status: http.StatusBadRequest, code: "InvalidQueryParameterValue", message: badQueryValue, refusal: true, front: true}
)

// serviceStats is GET /?restype=service&comp=stats. The secondary endpoint reads
// what the primary wrote, so it never lags behind.
func (x *exchange) serviceStats() error {
	if !x.Secondary {
		return errQueryValue
	}
	x.head()
	x.buf = service.AppendStats(x.buf[:0], x.start)
	return x.send(http.StatusOK, applicationXML)
}
