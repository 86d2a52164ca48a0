package server

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

// createTable is POST /Tables.
func (x *exchange) createTable() error {
	if err := request.CheckJSON(x.r.Header["Content-Type"]); err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	name, err := odata.ParseTable(x.json())
	if err != nil {
		return err
	}
	x.target.Table = name
	if err := x.account.store.CreateTable(x.r.Context(), name); err != nil {
		return err
	}
	x.setODataHead()
	x.setPreferenceApplied()
	link := string(odata.AppendTableLink(append([]byte(x.base), '/'), name))
	x.set("Location", link)
	if x.prefer == request.ReturnNoContent {
		x.set("Dataserviceid", link)
		return x.sendEmpty(http.StatusNoContent)
	}
	return x.sendTable(http.StatusCreated, name)
}

// sendTable sends a table as the response.
func (x *exchange) sendTable(status int, name string) error {
	o := x.form("Tables", element, "")
	x.out.Buf = odata.AppendTable(x.out.Buf[:0], name, o)
	x.event.Returned = 1
	return x.send(status, request.ContentType(x.level))
}

// element is the end of the metadata URL of a single entity or table.
const element = "/@Element"

// form returns the options for writing entities and tables in this response. The
// metadata URL names the collection; single is element or, for a feed, empty; suffix is
// that of a selection.
func (x *exchange) form(collection, single, suffix string) odata.Options {
	o := odata.Options{Level: x.level, ASCII: true, Account: x.Address.Account, Base: x.base, Table: x.target.Table}
	if x.level == odata.None {
		return o
	}
	o.Metadata = x.base + "/$metadata#" + collection + single + suffix
	return o
}

// metricsPrefix is the prefix of the service's own tables.
const metricsPrefix = "$Metrics"

// checkTable refuses a name that is not valid for a table.
func checkTable(name string) error {
	if strings.HasPrefix(name, metricsPrefix) {
		return problem.ErrNotFound
	}
	return edm.CheckTableName(name)
}

// early returns err, and marks the refusal of a name as early: a request for entities
// ends at the name of the table.
func early(err error) error {
	if err == nil {
		return nil
	}
	var model *edm.Error
	if !errors.As(err, &model) {
		return err
	}
	p := *problem.OfModel(model)
	p.Early = true
	return &p
}

// getTable is GET /Tables('T').
func (x *exchange) getTable() error {
	if err := x.checkOneTable(); err != nil {
		return err
	}
	name := x.target.Table
	found, err := x.account.store.Tables(x.r.Context(), edm.FoldTableName(name), 1)
	switch {
	case err != nil:
		return err
	case len(found) == 0 || edm.FoldTableName(found[0].Name) != edm.FoldTableName(name):
		return problem.ErrNotFound
	}
	x.setODataHead()
	return x.sendTable(http.StatusOK, found[0].Name)
}

// checkOneTable refuses a name that is not valid, and conditions: tables have no ETag.
func (x *exchange) checkOneTable() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	if len(x.r.Header["If-Match"])+len(x.r.Header["If-None-Match"]) > 0 {
		return problem.ErrNoETag
	}
	return nil
}

// deleteTable is DELETE /Tables('T').
func (x *exchange) deleteTable() error {
	if err := x.checkOneTable(); err != nil {
		return err
	}
	err := x.account.store.DeleteTable(x.r.Context(), x.target.Table)
	if errors.Is(err, store.ErrTableNotFound) {
		return problem.ErrNotFound
	}
	if err != nil {
		return err
	}
	x.setODataHead()
	return x.sendEmpty(http.StatusNoContent)
}

// misplaced refuses a request to a table for a resource of the account. The service takes
// the rest of the path for an entity of that table: a table to create is an entity without
// keys, and a table to delete is an entity with too few. It has no reads below a table.
func (x *exchange) misplaced() error {
	if err := early(checkTable(x.target.Table)); err != nil {
		return err
	}
	if x.method == http.MethodGet {
		return problem.ErrNotImplemented
	}
	if _, err := x.account.store.TableMeta(x.r.Context(), x.target.Table); err != nil {
		return err
	}
	if x.method != http.MethodPost {
		return problem.KeyCount(x.Address.Account, x.target.Table)
	}
	if err := request.CheckJSON(x.r.Header["Content-Type"]); err != nil {
		return err
	}
	return problem.ErrNeedValue
}

// tablesPerRead is how many tables are read from the store at once.
const tablesPerRead = 1000

// queryTables is GET /Tables.
func (x *exchange) queryTables() error {
	text := x.query.Get("$filter")
	if err := x.reserveFilter(text); err != nil {
		return err
	}
	keep, err := filter.ParseTables(text)
	if err != nil {
		return err
	}
	top, given, err := request.Top(x.query, maxPage)
	if err != nil {
		return err
	}
	if given && top == 0 {
		return problem.ErrInput
	}
	from, err := request.TableToken(x.query)
	if err != nil {
		return err
	}
	page, next, err := x.tablePage(from, keep, top)
	if err != nil {
		return err
	}
	suffix, names, err := request.Selection(x.query)
	if err != nil {
		return err
	}
	o := x.form("Tables", "", suffix)
	x.out.Buf = odata.AppendFeed(x.out.Buf[:0], o)
	o.Metadata, o.Select = "", names
	for i, t := range page {
		if !x.out.HasSpace() {
			next = &t
			break
		}
		if i > 0 {
			x.out.Buf = append(x.out.Buf, ',')
		}
		x.out.Buf = odata.AppendTable(x.out.Buf, t.Name, o)
		x.event.Returned++
		x.out.EndElement()
	}
	if err := x.out.ReserveRest(); err != nil {
		return err
	}
	x.setODataHead()
	if next != nil {
		x.set("X-Ms-Continuation-Nexttablename", request.TableTokenOf(*next))
	}
	x.out.Buf = append(x.out.Buf, "]}"...)
	return x.send(http.StatusOK, request.ContentType(x.level))
}

// tablePage returns at most top tables that match keep, starting at the folded name from,
// and the table at which the next page starts.
func (x *exchange) tablePage(from string, keep *filter.Expr, top int) (page []store.TableInfo, next *store.TableInfo, err error) {
	budget := examinable(keep)
	for first := true; ; first = false {
		read, err := x.account.store.Tables(x.r.Context(), from, tablesPerRead)
		// The client's own deadline ends a page that has a read before.
		if !first && x.r.Context().Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			return page, &store.TableInfo{Name: from}, nil
		}
		if err != nil {
			return nil, nil, err
		}
		x.event.Examined += len(read)
		// A page examines the tables of its first read at least, so that each page continues.
		if !first && x.s.now().Sub(x.start) >= maxPageTime {
			budget = 0
		}
		for _, t := range read {
			if budget == 0 {
				return page, &t, nil
			}
			budget--
			if !keep.MatchTable(t.Name) {
				continue
			}
			if len(page) == top {
				return page, &t, nil
			}
			page = append(page, t)
		}
		if len(read) < tablesPerRead {
			return page, nil, nil
		}
		// The smallest name greater than the last.
		from = edm.FoldTableName(read[len(read)-1].Name) + "\x00"
	}
}
