package local

import (
	"context"
	"encoding/json"
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

// Connections asks the server that has the data directory dir for its connections. It fails
// if no server answers there.
func Connections(ctx context.Context, dir string) ([]Connection, error) {
	c, token, err := dial(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return c, nil },
		DisableKeepAlives: true,
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+ConnectionsPath, nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set(remote.TokenHeader, token)
	answer, err := transport.RoundTrip(q)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the server answers %s", answer.Status)
	}
	var list []Connection
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxConnections)).Decode(&list); err != nil {
		return nil, fmt.Errorf("the answer of the server: %w", err)
	}
	return list, nil
}
