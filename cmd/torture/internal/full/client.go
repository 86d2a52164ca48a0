package full

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// requestTimeout is the longest that a request may take. A write waits for a stall.
const requestTimeout = time.Minute

// client sends requests to a server of the program.
type client struct {
	url  string // of the account, without a final slash
	cred *sharedkey.Credential
	http *http.Client
}

// newClient returns a client of the account that a connection string names.
func newClient(connection string) (*client, error) {
	settings := map[string]string{}
	for _, setting := range strings.Split(connection, ";") {
		name, text, _ := strings.Cut(setting, "=")
		settings[name] = text
	}
	cred, err := sharedkey.NewCredential(settings["AccountName"], settings["AccountKey"])
	if err != nil {
		return nil, err
	}
	return &client{
		strings.TrimSuffix(settings["TableEndpoint"], "/"), cred,
		&http.Client{Timeout: requestTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}, nil
}

// response is a response with its whole body.
type response struct {
	status int
	header http.Header
	body   []byte
}

// problem returns the status and the beginning of the body.
func (r *response) problem() string {
	return fmt.Sprintf("%d %.300s", r.status, bytes.TrimSpace(r.body))
}

// do sends a request. The path is relative to the account. The error is that of the
// connection; every status is a response.
func (c *client) do(method, path, contentType string, body []byte) (*response, error) {
	q, err := http.NewRequest(method, c.url+"/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	q.Header.Set("X-Ms-Version", "2019-02-02")
	q.Header.Set("DataServiceVersion", "3.0")
	q.Header.Set("Accept", "application/json;odata=nometadata")
	if contentType != "" {
		q.Header.Set("Content-Type", contentType)
		q.Header.Set("Prefer", "return-no-content")
	}
	if method == http.MethodDelete && !strings.HasPrefix(path, "Tables") {
		q.Header.Set("If-Match", "*")
	}
	if err := c.cred.SignRequest(q, time.Now()); err != nil {
		return nil, err
	}
	a, err := c.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	return &response{a.StatusCode, a.Header, text}, nil
}

const jsonType = "application/json"

// entityPath returns the path of a row.
func entityPath(row int) string {
	return fmt.Sprintf("%s(PartitionKey='%s',RowKey='%s')", tableNames[tableOf(row)], partitionKey(row), rowKey(row))
}

// insert inserts a row.
func (c *client) insert(seed uint64, row int) (*response, error) {
	return c.do(http.MethodPost, tableNames[tableOf(row)], jsonType, entityJSON(nil, seed, row))
}

// upsert writes a row, whether it exists or not.
func (c *client) upsert(seed uint64, row int) (*response, error) {
	return c.do(http.MethodPut, entityPath(row), jsonType, entityJSON(nil, seed, row))
}

func (c *client) deleteRow(row int) (*response, error) {
	return c.do(http.MethodDelete, entityPath(row), "", nil)
}

func (c *client) get(row int) (*response, error) {
	return c.do(http.MethodGet, entityPath(row), "", nil)
}

func (c *client) createTable(name string) (*response, error) {
	return c.do(http.MethodPost, "Tables", jsonType, fmt.Appendf(nil, `{"TableName":%q}`, name))
}

func (c *client) dropTable(name string) (*response, error) {
	return c.do(http.MethodDelete, "Tables('"+name+"')", "", nil)
}

// insertBatch inserts rows of a partition in one transaction.
func (c *client) insertBatch(seed uint64, rows []int) (*response, error) {
	return c.batch(rows, func(dst []byte, row int) []byte {
		dst = fmt.Appendf(dst, "POST %s/%s HTTP/1.1\r\nContent-Type: %s\r\nAccept: application/json;odata=nometadata\r\nPrefer: return-no-content\r\n\r\n",
			c.url, tableNames[tableOf(row)], jsonType)
		return entityJSON(dst, seed, row)
	})
}

// deleteBatch deletes rows of a partition in one transaction.
func (c *client) deleteBatch(rows []int) (*response, error) {
	return c.batch(rows, func(dst []byte, row int) []byte {
		return fmt.Appendf(dst, "DELETE %s/%s HTTP/1.1\r\nAccept: application/json\r\nIf-Match: *\r\n\r\n", c.url, entityPath(row))
	})
}

// refusedPart is the status of an operation that made a batch fail.
var refusedPart = regexp.MustCompile(`HTTP/1\.1 ([3-5][0-9][0-9]) `)

// batch sends one transaction. The status of the response is that of its first failing
// operation.
func (c *client) batch(rows []int, operation func(dst []byte, row int) []byte) (*response, error) {
	body := []byte("--batch_b\r\nContent-Type: multipart/mixed; boundary=changeset_c\r\n\r\n")
	for _, row := range rows {
		body = append(body, "--changeset_c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"...)
		body = append(operation(body, row), "\r\n"...)
	}
	body = append(body, "--changeset_c--\r\n--batch_b--\r\n"...)
	a, err := c.do(http.MethodPost, "$batch", "multipart/mixed; boundary=batch_b", body)
	if err != nil || a.status != http.StatusAccepted {
		return a, err
	}
	if m := refusedPart.FindSubmatch(a.body); m != nil {
		a.status, err = strconv.Atoi(string(m[1]))
	}
	return a, err
}

// query calls each with all entities of a table.
func (c *client) query(table string, each func(*entity)) error {
	next := ""
	for {
		a, err := c.do(http.MethodGet, table+"()"+next, "", nil)
		if err != nil {
			return err
		}
		if a.status != http.StatusOK {
			return fmt.Errorf("query of table %s: %s", table, a.problem())
		}
		var page struct{ Value []entity }
		if err := json.Unmarshal(a.body, &page); err != nil {
			return fmt.Errorf("query of table %s: %w", table, err)
		}
		for i := range page.Value {
			each(&page.Value[i])
		}
		p := a.header.Get("X-Ms-Continuation-Nextpartitionkey")
		if p == "" {
			return nil
		}
		next = "?NextPartitionKey=" + url.QueryEscape(p)
		if r := a.header.Get("X-Ms-Continuation-Nextrowkey"); r != "" {
			next += "&NextRowKey=" + url.QueryEscape(r)
		}
	}
}
