package e2e

import (
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// developmentKey is the public key that all SDKs know.
const developmentKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// TestConnectionStrings connects with the connection string of the server, and, if the
// server has default settings, with that of the development account in all SDKs.
func TestConnectionStrings(t *testing.T) {
	service := must(aztables.NewServiceClientFromConnectionString(shared.connectionString, options()))(t)
	wantRefusal(t, listOnce(t)(service), refusal{})

	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	if s.account != "devstoreaccount1" || s.key != developmentKey || !strings.HasSuffix(s.url, "/devstoreaccount1") {
		t.Errorf("a server without --account serves %s at %s", s.account, s.url)
	}
}

// TestAccounts checks that accounts are separate, and that each accepts both of its keys.
func TestAccounts(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	key := func(name string) string {
		return base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key "+name, 8)))
	}
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

// TestHostStyle uses URLs with the account in the host, as the Azure service does.
func TestHostStyle(t *testing.T) {
	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	address := strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/"+s.account)
	_, port, _ := net.SplitHostPort(address)
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address) // for every name
	}}
	t.Cleanup(transport.CloseIdleConnections)
	client := func(host string) *aztables.ServiceClient {
		return must(aztables.NewServiceClientWithSharedKey("http://"+host+":"+port, s.credential(t), optionsWith(&http.Client{Transport: transport})))(t)
	}
	primary := client(s.account + ".table.localhost")
	must(primary.CreateTable(t.Context(), "Table", nil))(t)
	table := primary.NewClient("Table")
	must(table.SubmitTransaction(t.Context(), adds(3), nil))(t)
	resp := must(table.GetEntity(t.Context(), "p", "r001", &aztables.GetEntityOptions{Format: pointer(aztables.MetadataFormatFull)}))(t)
	want := "http://" + s.account + ".table.localhost:" + port + "/Table(PartitionKey='p',RowKey='r001')"
	if got := members(t, resp.Value)["odata.id"]; got != want {
		t.Errorf("odata.id: got %v, want %s", got, want)
	}
	secondary := client(s.account + "-secondary.table.localhost")
	get(t, secondary.NewClient("Table"), "p", "r001")
	must(secondary.GetStatistics(t.Context(), nil))(t)
	get(t, s.service(t).NewClient("Table"), "p", "r001")
}
