package e2e

import (
	"encoding/base64"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// TestConnectionStrings takes the ready-made connection string, and with every
// setting at its default the one that the development account has in all SDKs.
func TestConnectionStrings(t *testing.T) {
	service := must(aztables.NewServiceClientFromConnectionString(shared.connectionString, options()))(t)
	wantRefusal(t, listOnce(t)(service), refusal{})

	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	const key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	if s.account != "devstoreaccount1" || s.key != key || !strings.HasSuffix(s.url, "/devstoreaccount1") {
		t.Errorf("a server without an account has %s at %s", s.account, s.url)
	}
}

// TestAccounts keeps accounts apart, each with its keys, one of which may go.
func TestAccounts(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	key := func(name string) string { return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key "+name, 8))) }
	account := func(s *server, name, key string) *aztables.ServiceClient {
		e := endpoint{url: strings.Replace(s.url, s.account, name, 1), account: name, key: key}
		return e.service(t)
	}
	s := start(t, data, []string{"AZURITE_ACCOUNTS=first:" + key("1") + ":" + key("2") + ";second:" + key("3")})
	for _, c := range []struct {
		name, account, key string
		want               refusal
	}{
		{"first key", "first", key("1"), refusal{}},
		{"second key", "first", key("2"), refusal{}},
		{"key of another account", "first", key("3"), unauthenticated},
		{"other account", "second", key("3"), refusal{}},
		{"no account", "third", key("3"), unauthenticated},
	} {
		t.Run(c.name, func(t *testing.T) { wantRefusal(t, listOnce(t)(account(s, c.account, c.key)), c.want) })
	}
	must(account(s, "first", key("1")).CreateTable(t.Context(), "Table", nil))(t)
	must(account(s, "first", key("2")).NewClient("Table").AddEntity(t.Context(), entity("p", "r"), nil))(t)
	_, err := account(s, "second", key("3")).NewClient("Table").GetEntity(t.Context(), "p", "r", nil)
	wantRefusal(t, err, refusal{404, "TableNotFound"})
	s.end(syscall.SIGTERM)

	s = start(t, data, []string{"AZURITE_ACCOUNTS=first:" + key("2") + ":" + key("4")})
	wantRefusal(t, listOnce(t)(account(s, "first", key("1"))), unauthenticated)
	get(t, account(s, "first", key("4")).NewClient("Table"), "p", "r")
}
