package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/store"
)

// maxPage is the number of entities in a page of the protocol.
const maxPage = 1000

// cursor is a query. It reads a page when it needs one.
type cursor struct {
	s     *Store
	ctx   context.Context
	table string
	q     store.Query

	options aztables.ListEntitiesOptions
	page    feed
	last    bool // page is the last one
	parser  odata.Parser
	current edm.Entity
	valid   bool // Next returned current
	count   int
	bytes   int // of the entities returned
	resume  *edm.Key
	ended   bool
	err     error
}

// Query implements store.Store. It is no snapshot: an entity is read when the cursor comes
// to its page. Reverse and Budget return errors.ErrUnsupported.
func (s *Store) Query(ctx context.Context, table string, q store.Query) store.Cursor {
	c := &cursor{s: s, ctx: ctx, table: table, q: q, resume: &edm.Key{}}
	if q.From != nil {
		*c.resume = *q.From
	}
	switch err := s.begin(ctx); {
	case err != nil:
		c.fail(err)
	case q.Reverse:
		c.fail(unsupported("descending order"))
	case q.Budget > 0:
		c.fail(unsupported("limit of the entities that a query examines"))
	default:
		if err = edm.CheckTableName(table); err == nil {
			err = store.CheckQuery(q)
		}
		if err != nil {
			c.fail(err)
			return c
		}
	}
	keep := q.Filter
	if q.From != nil {
		keep = filter.And(filter.Keys(filter.Bound{Kind: filter.BeforeRow, Key: *q.From}, filter.Bound{}), keep)
	}
	if text := keep.String(); text != "" {
		c.options.Filter = &text
	}
	if q.Select != nil {
		names := []string{edm.PartitionKeyName, edm.RowKeyName, edm.TimestampName}
		for _, name := range q.Select {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		text := strings.Join(names, ",")
		c.options.Select = &text
	}
	if q.Limit > 0 && q.Limit < maxPage {
		// One more entity shows whether any can follow.
		top := int32(q.Limit + 1)
		c.options.Top = &top
	}
	return c
}

// fail ends the cursor. It can be resumed unless the server or the contract refuses the
// query.
func (c *cursor) fail(err error) {
	c.ended, c.err = true, err
	var answer *Error
	refused := errors.As(err, &answer) && answer.Status < 500 && !errors.Is(err, store.ErrUnavailable)
	if refused || errors.Is(err, edm.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) {
		c.resume = nil
	}
}

// Next implements store.Cursor.
func (c *cursor) Next() bool {
	if c.valid {
		c.valid = false
		next := c.current.Key
		next.Row += "\x00" // the next possible key
		c.resume = &next
		c.parser.Reset()
	}
	if c.ended {
		return false
	}
	if err := c.s.begin(c.ctx); err != nil {
		c.fail(err)
		return false
	}
	object, err := c.object()
	if err != nil {
		c.fail(err)
		return false
	}
	if object == nil {
		c.ended, c.resume = true, nil
		return false
	}
	if c.current, err = parseEntity(&c.parser, object); err != nil {
		c.fail(fmt.Errorf("%s: entity of table %s: %w", c.s.options.Name, c.table, err))
		return false
	}
	if c.q.Limit > 0 && c.count == c.q.Limit || c.q.BudgetBytes > 0 && c.bytes >= c.q.BudgetBytes {
		key := c.current.Key
		c.ended, c.resume = true, &key
		return false
	}
	c.count++
	c.bytes += valueBytes(&c.current)
	c.valid = true
	return true
}

// valueBytes returns the size of e for store.Query.BudgetBytes.
func valueBytes(e *edm.Entity) int {
	n := 0
	for i := range e.Properties {
		n += len(e.Properties[i].Value.Bytes()) + 8
	}
	return n
}

// object returns the JSON of the next entity, nil at the end of the result.
func (c *cursor) object() ([]byte, error) {
	for {
		if c.page.rest != nil {
			object, err := c.page.next()
			if object != nil || err != nil {
				return object, c.pageError(err)
			}
			c.page.rest = nil
		}
		if c.last {
			return nil, nil
		}
		if err := c.read(); err != nil {
			return nil, err
		}
	}
}

// read reads the next page.
func (c *cursor) read() error {
	x := &exchange{}
	err := c.s.read(c.ctx, x, func(ctx context.Context) error {
		page, err := c.s.service.NewClient(c.table).NewListEntitiesPager(&c.options).NextPage(ctx)
		if err == nil {
			c.options.NextPartitionKey, c.options.NextRowKey = page.NextPartitionKey, page.NextRowKey
		}
		return err
	})
	if err != nil {
		return asTable(err)
	}
	empty := func(s *string) bool { return s == nil || *s == "" }
	c.last = empty(c.options.NextPartitionKey) && empty(c.options.NextRowKey)
	c.page, err = feedOf(x.reply)
	return c.pageError(err)
}

// pageError returns err with the address and the table of a page that is no list.
func (c *cursor) pageError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: page of table %s: %w", c.s.options.Name, c.table, err)
}

// Row implements store.Cursor.
func (c *cursor) Row() edm.Row { return c.current.View() }

// Resume implements store.Cursor.
func (c *cursor) Resume() *edm.Key { return c.resume }

// Err implements store.Cursor.
func (c *cursor) Err() error { return c.err }

// Close implements store.Cursor.
func (c *cursor) Close() error {
	c.ended, c.valid = true, false
	return nil
}
