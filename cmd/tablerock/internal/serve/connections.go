package serve

import (
	"encoding/json"
	"net/http"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
)

// Connections returns the connections of the server that Run would start, the first one of
// the account that its banner names. It opens no listener.
func (c *Config) Connections() ([]local.Connection, error) {
	if err := c.applyAzurite(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	main, side, err := c.addresses()
	if err != nil {
		return nil, err
	}
	if main.tcp.Port == 0 {
		return nil, usagef("--listen %s: the port is not known before the server runs", c.Listen)
	}
	accounts, err := c.accounts(main.exposed() || side.exposed())
	if err != nil {
		return nil, err
	}
	return connections(&endpoint{scheme: c.scheme(), host: main.reach(main.tcp)}, accounts), nil
}

func connections(at *endpoint, accounts []account) []local.Connection {
	var list []local.Connection
	for _, a := range accounts {
		list = append(list, local.Connection{Account: a.name, ConnectionString: at.connectionString(a.name, a.keys[0])})
	}
	return list
}

// answerConnections answers with the connections of the server.
func (h *localHandler) answerConnections(w http.ResponseWriter) {
	var accounts []account
	for _, one := range h.databases() {
		accounts = append(accounts, one.account)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(connections(h.at, accounts)) // an error means that the client is gone
}
