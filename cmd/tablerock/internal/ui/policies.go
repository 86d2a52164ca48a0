package ui

import (
	"bytes"
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/store"
)

// Protocol sends requests of the protocol, signed with a key.
type Protocol struct {
	URL        string // of the account's tables
	Credential *sharedkey.Credential
	Send       func(*http.Request) (*http.Response, error)
}

// Through returns a function that sends a request to a handler of this process.
func Through(h http.Handler) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		r.Host, r.RequestURI, r.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "127.0.0.1:1"
		w := &response{header: http.Header{}, status: http.StatusOK}
		h.ServeHTTP(w, r)
		return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header, Body: io.NopCloser(&w.body)}, nil
	}
}

// response keeps a response in memory.
type response struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *response) Header() http.Header         { return w.header }
func (w *response) WriteHeader(status int)      { w.status = status }
func (w *response) Write(p []byte) (int, error) { return w.body.Write(p) }

// document is the document of access policies in the protocol.
type document struct {
	XMLName xml.Name     `xml:"SignedIdentifiers"`
	List    []identifier `xml:"SignedIdentifier"`
}

type identifier struct {
	ID     string `xml:"Id"`
	Policy struct {
		Start      string `xml:",omitempty"`
		Expiry     string `xml:",omitempty"`
		Permission string `xml:",omitempty"`
	} `xml:"AccessPolicy"`
}

// maxDocument limits the bytes of a document.
const maxDocument = 1 << 20

// Policies returns the access policies of a table.
func (p *Protocol) Policies(ctx context.Context, table string) ([]explorer.Policy, error) {
	text, err := p.do(ctx, http.MethodGet, table, nil)
	if err != nil {
		return nil, err
	}
	var d document
	if err := xml.Unmarshal(text, &d); err != nil {
		return nil, fmt.Errorf("the access policies of table %s: %w", table, err)
	}
	var list []explorer.Policy
	for _, one := range d.List {
		list = append(list, explorer.Policy{
			ID: one.ID, Start: seconds(one.Policy.Start), Expiry: seconds(one.Policy.Expiry), Permission: one.Policy.Permission,
		})
	}
	return list, nil
}

// seconds returns the text of a time without its fraction, which the protocol writes with
// seven digits.
func seconds(text string) string {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t.UTC().Format(time.RFC3339)
	}
	return text
}

// SetPolicies replaces the access policies of a table.
func (p *Protocol) SetPolicies(ctx context.Context, table string, policies []explorer.Policy) error {
	d := document{List: []identifier{}}
	for _, one := range policies {
		i := identifier{ID: one.ID}
		i.Policy.Start, i.Policy.Expiry, i.Policy.Permission = one.Start, one.Expiry, one.Permission
		d.List = append(d.List, i)
	}
	text, err := xml.Marshal(d)
	if err != nil {
		return err
	}
	_, err = p.do(ctx, http.MethodPut, table, text)
	return err
}

// do sends a request for the access policies of a table and returns the body of the
// response.
func (p *Protocol) do(ctx context.Context, method, table string, body []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.URL+"/"+url.PathEscape(table)+"?comp=acl", bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("the access policies of table %s: no such address", table)
	}
	r.Header.Set("X-Ms-Version", "2019-02-02")
	if body != nil {
		r.Header.Set("Content-Type", "application/xml")
	}
	if err := p.Credential.SignRequest(r, time.Now()); err != nil {
		return nil, err
	}
	response, err := p.Send(r)
	if err != nil {
		return nil, fmt.Errorf("%w: the access policies of table %s", store.ErrUnavailable, table)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	if err != nil || response.StatusCode/100 == 2 {
		return text, err
	}
	var problem struct {
		Code    string `xml:"code"`
		Message string `xml:"message"`
	}
	if xml.Unmarshal(text, &problem) != nil || problem.Code == "" {
		problem.Code, problem.Message = response.Header.Get("X-Ms-Error-Code"), response.Status
	}
	first, _, _ := strings.Cut(problem.Message, "\n") // without the id and the time of the request
	return nil, explorer.Refuse(response.StatusCode, problem.Code, first)
}
