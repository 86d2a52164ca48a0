package explorer

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

const (
	usualRows = 100
	maxRows   = 1000
	usualCell = 1 << 10
	// maxPageBytes limits the rows of a page, and so its memory here and in the browser.
	maxPageBytes = 4 << 20
	// sliceTime is the time after which a page or a count returns what it has.
	sliceTime = 2 * time.Second
	// requestTime is that over a backend that answers by pages of its own. A slice that ends
	// in its first page would begin with it again.
	requestTime = 60 * time.Second
)

// query returns the account, the table and the query of a request, limited to the keys that
// the session may read.
func (x *exchange) query() (*Account, string, store.Query, error) {
	a, table, err := x.target(sharedkey.Query)
	if err != nil {
		return nil, "", store.Query{}, err
	}
	v := x.r.URL.Query()
	q, err := x.queryOf(v.Get("filter"), v.Get("select"))
	if err != nil {
		return nil, "", q, err
	}
	switch next := v.Get("next"); {
	case next != "":
		q.From, err = parseToken(next)
	case v.Has("pk") || v.Has("rk"):
		q.From = &edm.Key{Partition: v.Get("pk"), Row: v.Get("rk")}
	}
	return a, table, q, err
}

// queryOf returns the query of a filter and of names with commas, limited to the keys that
// the session may read.
func (x *exchange) queryOf(text, names string) (store.Query, error) {
	e, err := parseFilter(text)
	if err == nil && len(names) > maxFilter { // each is compared with all before it
		err = badInput(fmt.Sprintf("The names of properties have %d bytes, the limit is %d.", len(names), maxFilter))
	}
	if err != nil {
		return store.Query{}, err
	}
	q := store.Query{Filter: x.s.Grant.Restrict(e)}
	for name := range strings.SplitSeq(names, ",") {
		name = strings.TrimSpace(name)
		if name != "" && !isSystem(name) && !slices.Contains(q.Select, name) {
			q.Select = append(q.Select, name)
		}
	}
	if names != "" && q.Select == nil {
		q.Select = []string{}
	}
	return q, nil
}

func isSystem(name string) bool {
	return name == edm.PartitionKeyName || name == edm.RowKeyName || name == edm.TimestampName
}

// tokenOf returns the text of a position.
func tokenOf(k *edm.Key) string {
	if k == nil {
		return ""
	}
	text, _ := json.Marshal([2]string{k.Partition, k.Row}) // strings have JSON
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseToken(token string) (*edm.Key, error) {
	var parts [2]string
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &parts)
	}
	if err != nil {
		return nil, badInput("The continuation token is not valid.")
	}
	return &edm.Key{Partition: parts[0], Row: parts[1]}, nil
}

// slice is a part of the result of a query.
type slice struct {
	next     *edm.Key // of the rest, nil at the end
	examined int
	took     time.Duration
}

// read calls each for the rows of a query until it returns false or the time ends. The row
// for which each returns false is the first of the rest. A first row can take longer than d;
// after requestTime without one, read returns errSlice.
func (h *Handler) read(ctx context.Context, src transfer.Querier, table string, q store.Query, d time.Duration, each func(edm.Row) bool) (s slice, err error) {
	s, err = h.readSlice(ctx, src, table, q, d, each)
	if errors.Is(err, errSlice) && s.took < requestTime {
		s, err = h.readSlice(ctx, src, table, q, requestTime, each)
	}
	return s, err
}

// readSlice is read without more time. It returns errSlice if the query has to begin again
// where it began.
func (h *Handler) readSlice(
	ctx context.Context, src transfer.Querier, table string, q store.Query, d time.Duration, each func(edm.Row) bool,
) (s slice, err error) {
	begin := h.o.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c := src.Query(ctx, table, q)
	if _, local := c.(store.Examiner); !local {
		d = max(d, requestTime)
	}
	timer := time.AfterFunc(d, func() { cancel(errSlice) })
	defer timer.Stop()
	for c.Next() {
		row := c.Row()
		if !each(row) {
			key := row.Key()
			s.next = &key
			break
		}
	}
	err = c.Err()
	late := errors.Is(context.Cause(ctx), errSlice) && (errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable))
	if late {
		err = nil
	}
	if err == nil && s.next == nil {
		s.next = c.Resume()
	}
	if late && (s.next == nil || *s.next == *cmp.Or(q.From, &edm.Key{})) {
		err = errSlice
	}
	if e, ok := c.(store.Examiner); ok {
		s.examined = e.Examined()
	}
	s.took = h.o.Now().Sub(begin)
	return s, errors.Join(err, c.Close())
}

// errSlice ends a slice.
var errSlice = fmt.Errorf("the time of the slice has ended: %w", context.DeadlineExceeded)

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func (x *exchange) entities() (any, error) {
	a, table, q, err := x.query()
	if err != nil {
		return nil, err
	}
	top, err := x.number("top", usualRows, 1, maxRows)
	if err != nil {
		return nil, err
	}
	cell, err := x.number("cell", usualCell, 0, edm.MaxBinaryBytes)
	if err != nil {
		return nil, err
	}
	page := &EntityPage{Columns: []Column{}, Rows: []Entity{}}
	index := map[string]int{}
	for i, name := range q.Select {
		page.Columns = append(page.Columns, Column{Name: name, Types: []string{}})
		index[name] = i
	}
	q.Limit, q.BudgetBytes = int(top)+1, maxPageBytes // one row more tells whether there is a rest
	bytes := 0
	s, err := x.h.read(x.r.Context(), a.Store, table, q, sliceTime, func(row edm.Row) bool {
		if len(page.Rows) == int(top) || bytes > maxPageBytes {
			return false
		}
		e := entityOf(row, int(cell))
		page.add(e, index)
		bytes += e.bytes()
		return true
	})
	page.Next, page.Examined, page.Ms = tokenOf(s.next), s.examined, milliseconds(s.took)
	return page, err
}

// add adds a row and its columns.
func (p *EntityPage) add(e Entity, index map[string]int) {
	p.Rows = append(p.Rows, e)
	for i := range e.Properties {
		name := e.Properties[i].Name
		at, ok := index[name]
		if !ok {
			at = len(p.Columns)
			index[name] = at
			p.Columns = append(p.Columns, Column{Name: name, Types: []string{}})
		}
		if c := &p.Columns[at]; !slices.Contains(c.Types, e.Properties[i].Type) {
			c.Types = append(c.Types, e.Properties[i].Type)
		}
	}
}

func (x *exchange) count() (any, error) {
	a, table, q, err := x.query()
	if err != nil {
		return nil, err
	}
	q.Select = []string{}
	begin, n := x.h.o.Now(), 0
	s, err := x.h.read(x.r.Context(), a.Store, table, q, sliceTime, func(edm.Row) bool {
		if n&255 == 255 && x.h.o.Now().Sub(begin) > sliceTime {
			return false
		}
		n++
		return true
	})
	return map[string]any{"count": n, "next": tokenOf(s.next), "ms": milliseconds(s.took)}, err
}

func (x *exchange) entity() (any, error) {
	a, table, err := x.target(sharedkey.Query)
	if err != nil {
		return nil, err
	}
	v := x.r.URL.Query()
	return x.readEntity(a, table, edm.Key{Partition: v.Get("pk"), Row: v.Get("rk")})
}

// readEntity returns an entity, if the session may read it.
func (x *exchange) readEntity(a *Account, table string, key edm.Key) (*Entity, error) {
	if err := x.allow(sharedkey.Query, table); err != nil {
		return nil, err
	}
	if err := x.s.Grant.AllowKey(key); err != nil {
		return nil, err
	}
	var e Entity
	err := a.Store.View(x.r.Context(), table, key, func(row edm.Row) error {
		e = entityOf(row, 0)
		return nil
	})
	return &e, err
}
