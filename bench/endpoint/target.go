package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
)

// development is the connection string that UseDevelopmentStorage=true means.
const development = "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;" +
	"AccountKey=Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==;" +
	"TableEndpoint=http://127.0.0.1:10002/devstoreaccount1;"

// target is an account of a service.
type target struct {
	tls      bool
	insecure bool   // accept any certificate
	host     string // with the port
	base     string // path of the account, without a final slash
	account  string
	key      []byte
}

func parseTarget(connectionString string) (*target, error) {
	if strings.TrimSuffix(connectionString, ";") == "UseDevelopmentStorage=true" {
		connectionString = development
	}
	settings := map[string]string{}
	for _, setting := range strings.Split(connectionString, ";") {
		if name, value, ok := strings.Cut(setting, "="); ok {
			settings[name] = value
		}
	}
	t := &target{account: settings["AccountName"]}
	var err error
	if t.key, err = base64.StdEncoding.DecodeString(settings["AccountKey"]); err != nil || len(t.key) == 0 || t.account == "" {
		return nil, errors.New("the connection string has no AccountName, or no AccountKey in base64")
	}
	endpoint := settings["TableEndpoint"]
	if endpoint == "" {
		endpoint = "https://" + t.account + ".table." + settings["EndpointSuffix"]
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the connection string has no valid TableEndpoint: %q", endpoint)
	}
	t.tls, t.host, t.base = u.Scheme == "https", u.Host, strings.TrimSuffix(u.Path, "/")
	if u.Port() == "" {
		t.host += map[bool]string{false: ":80", true: ":443"}[t.tls]
	}
	return t, nil
}

// on returns the same account on another server.
func (t *target) on(host string) *target {
	other := *t
	other.host = host
	return &other
}

// readReadyFile reads the connection string and, unless -pid gives it, the process id from
// a ready file of tablerock serve.
func (s *settings) readReadyFile() error {
	text, err := os.ReadFile(s.readyFile)
	if err != nil {
		return err
	}
	var ready struct {
		PID              int    `json:"pid"`
		ConnectionString string `json:"connection_string"`
	}
	if err := json.Unmarshal(text, &ready); err != nil {
		return fmt.Errorf("%s: %w", s.readyFile, err)
	}
	s.connectionString = ready.ConnectionString
	if len(s.pids) == 0 {
		s.pids = []int{ready.PID}
	}
	return nil
}
