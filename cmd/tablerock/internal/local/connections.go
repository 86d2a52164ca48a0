package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/tablerock-db/tablerock/store/remote"
)

// ConnectionsPath is the path of the connections of a server. No account has this name.
const ConnectionsPath = "/-/connections"

// maxConnections limits the bytes of the list of connections.
const maxConnections = 16 << 20

// Connection is how clients connect to an account of a server. ConnectionString has its key.
type Connection struct {
	Account          string `json:"account"`
	ConnectionString string `json:"connection_string"`
}

// LinkPath is the path of a link to the pages of a server, which logs in once.
const LinkPath = "/-/link"

// Connections asks the server that has the data directory dir for its connections. It fails
// if no server answers there.
func Connections(ctx context.Context, dir string) (list []Connection, err error) {
	err = ask(ctx, dir, ConnectionsPath, &list)
	return list, err
}

// ErrNoPages means that a server answers, and its pages are off.
var ErrNoPages = errors.New("the pages of the server are off")

// Link asks the server that has the data directory dir for a link to its pages. It fails if
// no server answers there, or with ErrNoPages.
func Link(ctx context.Context, dir string) (link string, err error) {
	err = ask(ctx, dir, LinkPath, &link)
	if code := statusError(0); errors.As(err, &code) && code == http.StatusNotFound {
		err = ErrNoPages
	}
	return link, err
}

// statusError is the status of an answer that is none of success.
type statusError int

func (e statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", int(e), http.StatusText(int(e)))
}

// ask sets v to what the server of dir answers to a GET.
func ask(ctx context.Context, dir, path string, v any) error {
	c, token, err := dial(ctx, dir)
	if err != nil {
		return err
	}
	defer c.Close()
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c, nil },
		DisableKeepAlives: true,
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
	if err != nil {
		return err
	}
	q.Header.Set(remote.TokenHeader, token)
	answer, err := transport.RoundTrip(q)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return statusError(answer.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxConnections)).Decode(v); err != nil {
		return fmt.Errorf("the answer of the server: %w", err)
	}
	return nil
}
