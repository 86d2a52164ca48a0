package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// rows is the number of entities in the table, of about 1 KiB each. A page is many times
// as large as the socket buffers.
const rows = 1000

// sender sends signed requests.
type sender struct {
	*config
	credential *sharedkey.Credential
	client     *http.Client
	table      string
	next       int // row
}

func newSender(c *config) (*sender, error) {
	_, account, ok := strings.Cut(c.url.Path, "/")
	if !ok {
		return nil, fmt.Errorf("%s names no account", c.url)
	}
	credential, err := sharedkey.NewCredential(account, c.key)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: c.good}}
	return &sender{config: c, credential: credential, client: client, table: fmt.Sprintf("SlowClients%d", time.Now().UnixNano())}, nil
}

// request returns a signed request.
func (s *sender) request(ctx context.Context, method, path, body string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.url.String()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json;odata=nometadata")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Prefer", "return-no-content")
	return r, s.credential.SignRequest(r, time.Now())
}

// send sends a request and returns an error unless it succeeds.
func (s *sender) send(ctx context.Context, method, path, body string) error {
	r, err := s.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(response.Body)
	err = errors.Join(err, response.Body.Close())
	if err == nil && response.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	return err
}

// entity returns the JSON of a row.
func entity(partition string, row int) string {
	return fmt.Sprintf(`{"PartitionKey":"%s","RowKey":"%06d","Text":"%s"}`, partition, row, strings.Repeat("0123456789", 100))
}

// prepare creates the table and inserts its rows.
func (s *sender) prepare(ctx context.Context) error {
	if err := s.send(ctx, http.MethodPost, "/Tables", `{"TableName":"`+s.table+`"}`); err != nil {
		return err
	}
	for i := range rows {
		if err := s.send(ctx, http.MethodPost, "/"+s.table, entity("page", i)); err != nil {
			return err
		}
	}
	return nil
}

// latencies are sorted.
type latencies []time.Duration

// at returns the latency that the given fraction of the requests did not exceed.
func (l latencies) at(share float64) time.Duration {
	return l[min(len(l)-1, int(share*float64(len(l))))].Round(time.Microsecond)
}

// measure runs the good clients, which insert and read alternately, and returns their
// latencies.
func (s *sender) measure(ctx context.Context) (latencies, error) {
	took := make([]latencies, s.good)
	errs := make([]error, s.good)
	var clients sync.WaitGroup
	for i := range s.good {
		clients.Go(func() {
			for n := range s.requests {
				method, path, body := http.MethodGet, fmt.Sprintf("/%s(PartitionKey='page',RowKey='%06d')", s.table, n%rows), ""
				if n%2 == 0 {
					method, path, body = http.MethodPost, "/"+s.table, entity(fmt.Sprintf("good%d", i), s.next+n)
				}
				start := time.Now()
				if errs[i] = s.send(ctx, method, path, body); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	clients.Wait()
	s.next += s.requests
	all := slices.Concat(took...)
	slices.Sort(all)
	return all, errors.Join(errs...)
}
