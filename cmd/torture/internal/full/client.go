package full

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/rest"
)

// requestTimeout is the longest that a request may take. A write waits for a stall.
const requestTimeout = time.Minute

// client sends requests to a server of the program.
type client struct{ *rest.Client }

// newClient returns a client of the account that a connection string names.
func newClient(connection string) (*client, error) {
	c, err := rest.NewConnection(connection, requestTimeout)
	return &client{c}, err
}

type response = rest.Response

// do sends a request with the body of an entity, or without a body.
func (c *client) do(method, path string, body []byte) (*response, error) {
	r := rest.Request{Method: method, Path: path, Body: body}
	if body != nil {
		r.ContentType = rest.JSON
	}
	if method == http.MethodDelete && !strings.HasPrefix(path, "Tables") {
		r.IfMatch = "*"
	}
	return c.Do(context.Background(), r)
}

// entityPath returns the path of a row.
func entityPath(row int) string {
	return fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", tableNames[tableOf(row)], partitionKey(row), rowKey(row))
}

// insert inserts a row.
func (c *client) insert(seed uint64, row int) (*response, error) {
	return c.do(http.MethodPost, tableNames[tableOf(row)], entityJSON(nil, seed, row))
}

// upsert writes a row, whether it exists or not.
func (c *client) upsert(seed uint64, row int) (*response, error) {
	return c.do(http.MethodPut, entityPath(row), entityJSON(nil, seed, row))
}

func (c *client) deleteRow(row int) (*response, error) {
	return c.do(http.MethodDelete, entityPath(row), nil)
}

func (c *client) get(row int) (*response, error) {
	return c.do(http.MethodGet, entityPath(row), nil)
}

func (c *client) createTable(name string) (*response, error) {
	return c.do(http.MethodPost, "Tables", fmt.Appendf(nil, `{"TableName":%q}`, name))
}

func (c *client) dropTable(name string) (*response, error) {
	return c.do(http.MethodDelete, "Tables('"+name+"')", nil)
}

// insertBatch inserts rows of a partition in one transaction.
func (c *client) insertBatch(seed uint64, rows []int) (*response, error) {
	return c.batch(rows, func(row int) rest.Request {
		return rest.Request{Method: http.MethodPost, Path: tableNames[tableOf(row)], ContentType: rest.JSON, Body: entityJSON(nil, seed, row)}
	})
}

// deleteBatch deletes rows of a partition in one transaction.
func (c *client) deleteBatch(rows []int) (*response, error) {
	return c.batch(rows, func(row int) rest.Request {
		return rest.Request{Method: http.MethodDelete, Path: entityPath(row), IfMatch: "*"}
	})
}

// batch sends one transaction. The status of the response is that of its first failing
// operation.
func (c *client) batch(rows []int, operation func(row int) rest.Request) (*response, error) {
	operations := make([]rest.Request, len(rows))
	for i, row := range rows {
		operations[i] = operation(row)
	}
	return c.Batch(context.Background(), operations)
}

// query calls each with all entities of a table.
func (c *client) query(table string, each func(*entity)) error {
	next := ""
	for {
		a, err := c.do(http.MethodGet, table+"()"+next, nil)
		if err != nil {
			return err
		}
		if a.Status != http.StatusOK {
			return fmt.Errorf("query of table %s: %s", table, a.Problem())
		}
		var page struct{ Value []entity }
		if err := json.Unmarshal(a.Body, &page); err != nil {
			return fmt.Errorf("query of table %s: %w", table, err)
		}
		for i := range page.Value {
			each(&page.Value[i])
		}
		p := a.Header.Get("X-Ms-Continuation-Nextpartitionkey")
		if p == "" {
			return nil
		}
		next = "?NextPartitionKey=" + url.QueryEscape(p)
		if r := a.Header.Get("X-Ms-Continuation-Nextrowkey"); r != "" {
			next += "&NextRowKey=" + url.QueryEscape(r)
		}
	}
}
