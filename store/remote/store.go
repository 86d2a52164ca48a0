package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/store"
)

// Options configures a Store. The zero Options are the defaults.
type Options struct {
	// Dial connects to the server. The default is by TCP to the host of the endpoint.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Token is the value of TokenHeader in each request. The default sends none.
	Token string
	// Name is what errors call the server. The default is the URL of the endpoint.
	Name string
	// Retries is how often a request that a busy server refused is repeated. The
	// default is 6.
	Retries int
	// RetryDelay is the delay before the first repetition, which then grows, if the server
	// gives none. The default is 0.8 s.
	RetryDelay time.Duration
	// MaxRetryDelay limits the delay. A server that demands a longer one fails the
	// request. The default is 30 s.
	MaxRetryDelay time.Duration
	// WaitForServer repeats reads that reach no server, once a Table server has answered: it may
	// be starting again. Without it, such a read fails at once.
	WaitForServer bool
	// Retrying is called before the delay of the n-th of at most limit repetitions with
	// what failed, without a secret. Calls may be concurrent. The default does nothing.
	Retrying func(cause string, n, limit int)
}

// tryTimeout limits one attempt of a request. The service itself ends after 30 s.
const tryTimeout = 90 * time.Second

// grace is how long a write that was sent waits for its outcome after the end of its ctx.
const grace = 5 * time.Second

// Store is a store.Store over an account of a Table server. All methods may be called
// concurrently.
type Store struct {
	endpoint  Endpoint
	options   Options
	service   *aztables.ServiceClient
	transport *transport
	boundary  string // of batches
	answered  atomic.Bool
	closed    atomic.Bool
	writing   sync.RWMutex // writes hold it shared, and Close waits for it
}

// Open returns a store of the account at e. It does not connect. The caller closes the
// store. No error contains a secret.
func Open(e Endpoint, o Options) (*Store, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return nil, errors.New("the URL of the endpoint is not valid")
	}
	if o.Name == "" {
		o.Name = e.URL
	}
	if o.Retrying == nil {
		o.Retrying = func(string, int, int) {}
	}
	if o.Retries == 0 {
		o.Retries = 6
	}
	if o.RetryDelay == 0 {
		o.RetryDelay = 800 * time.Millisecond
	}
	if o.MaxRetryDelay == 0 {
		o.MaxRetryDelay = 30 * time.Second
	}
	s := &Store{endpoint: e, options: o, transport: newTransport(o.Dial, o.Token), boundary: rand.Text()}
	c := &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: s.transport, PerCallPolicies: []policy.Policy{&wire{base: u.EscapedPath()}},
		Telemetry: policy.TelemetryOptions{Disabled: true},
	}}
	switch {
	case e.Key != "" && e.Account == "":
		return nil, fmt.Errorf("%s: a key needs the name of its account", e.URL)
	case e.Key != "":
		key, err := aztables.NewSharedKeyCredential(e.Account, e.Key)
		if err != nil {
			return nil, fmt.Errorf("the key of account %s is not base64", e.Account)
		}
		s.service, err = aztables.NewServiceClientWithSharedKey(e.URL, key, c)
		return s, err
	case e.SAS != "":
		s.service, err = aztables.NewServiceClientWithNoCredential(e.URL+"/?"+e.SAS, c)
		return s, err
	case e.Entra:
		if u.Scheme != "https" {
			return nil, fmt.Errorf("%s: Entra ID needs https; give an account key or a SAS", e.URL)
		}
		credential, err := newIdentity()
		if err != nil {
			return nil, err
		}
		s.service, err = aztables.NewServiceClient(e.URL, credential, c)
		return s, err
	}
	s.service, err = aztables.NewServiceClientWithNoCredential(e.URL, c)
	return s, err
}

// Endpoint returns the endpoint of the store.
func (s *Store) Endpoint() Endpoint { return s.endpoint }

// Answered reports whether a Table server has answered a request of the store. Before that, the
// address may be wrong.
func (s *Store) Answered() bool { return s.answered.Load() }

// begin returns an error if the store is closed or ctx has ended.
func (s *Store) begin(ctx context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return ctx.Err()
}

// read runs call, a read of the SDK, with x. It repeats reads that failed.
func (s *Store) read(ctx context.Context, x *exchange, call func(context.Context) error) error {
	retry := s.retry(func(resp *http.Response, err error) bool {
		if err != nil {
			return ctx.Err() == nil && (x.state != unsent || s.options.WaitForServer && s.Answered() && x.wrong == "")
		}
		switch code := resp.StatusCode; code {
		case http.StatusRequestTimeout, http.StatusTooManyRequests:
			return true
		default:
			return code >= 500 && code != http.StatusNotImplemented
		}
	})
	c := policy.WithRetryOptions(context.WithValue(ctx, exchangeKey{}, x), retry)
	if err := call(c); err != nil {
		_, err = s.failure(ctx, x, err, false)
		return err
	}
	s.answered.Store(true)
	return nil
}

// write runs call, a write of the SDK, with x. It repeats only what a busy server refused: a
// proxy can answer 408 or 503 for a server that has executed the write. The index of a batch's
// message is that of the operation that failed.
func (s *Store) write(ctx context.Context, x *exchange, call func(context.Context) error) (index int, err error) {
	s.writing.RLock()
	defer s.writing.RUnlock()
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	retry := s.retry(func(resp *http.Response, err error) bool {
		if err != nil || !refuses(resp) {
			return false
		}
		x.sent.Store(false)
		if ctx.Err() != nil {
			return false
		}
		x.state = unsent
		return true
	})
	c, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if x.sent.Load() {
			time.AfterFunc(grace, cancel)
		} else {
			cancel()
		}
	})()
	c = policy.WithRetryOptions(context.WithValue(c, exchangeKey{}, x), retry)
	if err := call(c); err != nil && !x.done() {
		return s.failure(ctx, x, err, true)
	}
	if !slices.Contains(x.want, x.status) {
		return 0, s.noTable(x)
	}
	s.answered.Store(true)
	return 0, nil
}

// done reports whether the server executed the request and its body is there.
func (x *exchange) done() bool { return x.state == answered && x.status < 300 && x.reply != nil }

// The status codes of writes that a server executed.
var (
	statusCreated  = []int{http.StatusCreated, http.StatusNoContent} // of inserts and new tables
	statusChanged  = []int{http.StatusNoContent}
	statusAccepted = []int{http.StatusAccepted} // of batches
)

// noTable returns the error of a write whose response no Table server sends. The outcome is
// unknown, because a proxy may have changed the response of one.
func (s *Store) noTable(x *exchange) error {
	return fmt.Errorf("%w: %s answers a write with the status %d and the type %q, as no Table server does; check the address",
		store.ErrOutcomeUnknown, s.options.Name, x.status, x.header.Get("Content-Type"))
}

// retry returns the options of requests that are repeated if should says so.
func (s *Store) retry(should func(resp *http.Response, err error) bool) policy.RetryOptions {
	n := 0
	return policy.RetryOptions{
		ShouldRetry: func(resp *http.Response, err error) bool {
			if !should(resp, err) || s.isTooLong(resp) {
				return false
			}
			if n++; n <= s.options.Retries {
				cause := "the connection failed" // the error may name the URL with a signature
				if err == nil {
					cause = (&Error{Status: resp.StatusCode, Code: printable(resp.Header.Get("x-ms-error-code"), 64)}).Error()
				}
				s.options.Retrying(cause, n, s.options.Retries)
			}
			return true
		},
		MaxRetries: int32(s.options.Retries), TryTimeout: tryTimeout, RetryDelay: s.options.RetryDelay, MaxRetryDelay: s.options.MaxRetryDelay,
	}
}

// isTooLong reports whether the server demands a delay above the limit.
func (s *Store) isTooLong(resp *http.Response) bool {
	if resp == nil {
		return false
	}
	after, err := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 32)
	return err == nil && time.Duration(after)*time.Second > s.options.MaxRetryDelay
}

// CreateTable implements store.Store.
func (s *Store) CreateTable(ctx context.Context, table string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	_, err := s.write(ctx, &exchange{want: statusCreated}, func(ctx context.Context) error {
		_, err := s.service.CreateTable(ctx, table, nil)
		return err
	})
	return err
}

// DeleteTable implements store.Store.
func (s *Store) DeleteTable(ctx context.Context, table string) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	if err := edm.CheckTableName(table); err != nil {
		return err
	}
	_, err := s.write(ctx, &exchange{want: statusChanged}, func(ctx context.Context) error {
		_, err := s.service.DeleteTable(ctx, table, nil)
		return err
	})
	return asTable(err)
}

// asTable returns err, with ErrTableNotFound for the answer that a resource is missing.
func asTable(err error) error {
	var e *Error
	if errors.As(err, &e) && e.cause == store.ErrEntityNotFound {
		e.cause = store.ErrTableNotFound
	}
	return err
}

// maxTables limits the tables that Tables reads.
const maxTables = 1 << 20

// Tables implements store.Store. Created is 0.
func (s *Store) Tables(ctx context.Context, from string, limit int) ([]store.TableInfo, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	from = edm.FoldTableName(from)
	var list []store.TableInfo
	var next *string
	for {
		x := &exchange{}
		err := s.read(ctx, x, func(ctx context.Context) error {
			page, err := s.service.NewListTablesPager(&aztables.ListTablesOptions{NextTableName: next}).NextPage(ctx)
			next = page.NextTableName
			return err
		})
		if err != nil {
			return nil, err
		}
		names, err := tableNames(x.reply)
		if err != nil {
			return nil, fmt.Errorf("%s: list of tables: %w", s.options.Name, err)
		}
		for _, name := range names {
			if edm.FoldTableName(name) >= from {
				list = append(list, store.TableInfo{Name: name})
			}
		}
		if next == nil || *next == "" {
			break
		}
		if len(list) > maxTables {
			return nil, fmt.Errorf("%s has more than %d tables", s.options.Name, maxTables)
		}
	}
	slices.SortFunc(list, func(a, b store.TableInfo) int {
		return edm.Compare(edm.FoldTableName(a.Name), edm.FoldTableName(b.Name))
	})
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	return list, nil
}

// stub is an entity for the SDK, in place of the real one.
const stub = `{"PartitionKey":"p","RowKey":"r"}`

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, table string, key edm.Key) (edm.Entity, error) {
	if err := s.begin(ctx); err != nil {
		return edm.Entity{}, err
	}
	if err := edm.CheckTableName(table); err != nil {
		return edm.Entity{}, err
	}
	if edm.CheckKey(key) != nil {
		// The table may be missing, which is another error.
		c := s.Query(ctx, table, store.Query{Limit: 1})
		c.Next()
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return edm.Entity{}, err
		}
		return edm.Entity{}, store.ErrEntityNotFound
	}
	x := &exchange{link: string(odata.AppendKeyLink(nil, table, key.Partition, key.Row))}
	err := s.read(ctx, x, func(ctx context.Context) error {
		_, err := s.service.NewClient(table).GetEntity(ctx, "p", "r", nil)
		return err
	})
	if err != nil {
		return edm.Entity{}, err
	}
	e, err := parseEntity(new(odata.Parser), x.reply)
	if err != nil {
		return e, fmt.Errorf("%s: entity of table %s: %w", s.options.Name, table, err)
	}
	return edm.EntityOf(e.View()), nil
}

// View implements store.Store.
func (s *Store) View(ctx context.Context, table string, key edm.Key, read func(edm.Row) error) error {
	e, err := s.Get(ctx, table, key)
	if err != nil {
		return err
	}
	return read(e.View())
}

// unsupported returns the error for what the protocol does not have.
func unsupported(what string) error {
	return fmt.Errorf("the Table protocol has no %s: %w", what, errors.ErrUnsupported)
}

// TableMeta returns errors.ErrUnsupported.
func (s *Store) TableMeta(context.Context, string) ([]byte, error) {
	return nil, unsupported("metadata of tables")
}

// SetTableMeta returns errors.ErrUnsupported.
func (s *Store) SetTableMeta(context.Context, string, []byte) error {
	return unsupported("metadata of tables")
}

// AccountMeta returns errors.ErrUnsupported.
func (s *Store) AccountMeta(context.Context) ([]byte, error) {
	return nil, unsupported("metadata of accounts")
}

// SetAccountMeta returns errors.ErrUnsupported.
func (s *Store) SetAccountMeta(context.Context, []byte) error {
	return unsupported("metadata of accounts")
}

// Close implements store.Store. It waits for writes, and closes idle connections.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.writing.Lock()
		defer s.writing.Unlock()
		s.transport.CloseIdleConnections()
	}
	return nil
}
