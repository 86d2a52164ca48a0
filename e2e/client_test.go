package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// options returns options without retries.
func options() *aztables.ClientOptions { return optionsWith(http.DefaultClient) }

func optionsWith(transport policy.Transporter) *aztables.ClientOptions {
	return &aztables.ClientOptions{ClientOptions: azcore.ClientOptions{
		Retry:     policy.RetryOptions{MaxRetries: -1, TryTimeout: time.Minute},
		Transport: transport,
	}}
}

func (e *endpoint) credential(t *testing.T) *aztables.SharedKeyCredential {
	t.Helper()
	return must(aztables.NewSharedKeyCredential(e.account, e.key))(t)
}

// service returns a client of the account.
func (e *endpoint) service(t *testing.T) *aztables.ServiceClient {
	t.Helper()
	return must(aztables.NewServiceClientWithSharedKey(e.url, e.credential(t), options()))(t)
}

// must returns a function that returns v, or fails the test if err is not nil.
func must[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var tables atomic.Int64

// tableName returns a name that no other test uses.
func tableName() string {
	return fmt.Sprintf("E%d%d", time.Now().UnixMicro(), tables.Add(1))
}

// newTable creates a table of the shared account and deletes it at the end of the test.
func newTable(t *testing.T) (string, *aztables.Client) {
	t.Helper()
	name := tableName()
	client := shared.service(t).NewClient(name)
	must(client.CreateTable(t.Context(), nil))(t)
	t.Cleanup(func() {
		if _, err := client.Delete(context.Background(), nil); err != nil {
			t.Errorf("delete the table: %v", err)
		}
	})
	return name, client
}

// property is a member of an entity: its JSON, and its type if the JSON does not imply it.
type property struct{ name, edm, json string }

// entity returns the JSON of an entity with unchanged keys. The entity type of the SDK doubles
// their quotes.
func entity(partition, row string, properties ...property) []byte {
	text := `{"PartitionKey":` + quote(partition) + `,"RowKey":` + quote(row)
	for _, p := range properties {
		if p.edm != "" {
			text += `,` + quote(p.name+"@odata.type") + `:` + quote(p.edm)
		}
		text += `,` + quote(p.name) + `:` + p.json
	}
	return []byte(text + `}`)
}

// quote returns a JSON string.
func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // cannot happen for a string
	}
	return string(text)
}

// members decodes the entity of a response.
func members(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// custom returns the members that are neither keys nor metadata.
func custom(m map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range m {
		if name != "PartitionKey" && name != "RowKey" && name != "Timestamp" && !strings.Contains(name, "odata.") {
			out[name] = v
		}
	}
	return out
}

// get reads an existing entity.
func get(t *testing.T, client *aztables.Client, partition, row string) map[string]any {
	t.Helper()
	resp := must(client.GetEntity(t.Context(), partition, row, nil))(t)
	return members(t, resp.Value)
}

// rows reads all pages of a query and returns the row keys in order.
func rows(t *testing.T, client *aztables.Client, filter string) []string {
	t.Helper()
	all, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{Filter: &filter})
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	return all
}

func queryRows(ctx context.Context, client *aztables.Client, o *aztables.ListEntitiesOptions) ([]string, error) {
	all := []string{}
	for pager := client.NewListEntitiesPager(o); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, text := range page.Entities {
			var e struct{ RowKey string }
			if err := json.Unmarshal(text, &e); err != nil {
				return nil, err
			}
			all = append(all, e.RowKey)
		}
	}
	return all, nil
}

// refusal is an error as a client sees it. The zero value is success.
type refusal struct {
	status int
	code   string
}

// refusalOf returns the error of the service. The status is -1 for another error.
func refusalOf(err error) refusal {
	var e *azcore.ResponseError
	switch {
	case err == nil:
		return refusal{}
	case errors.As(err, &e):
		return refusal{e.StatusCode, e.ErrorCode}
	}
	return refusal{-1, err.Error()}
}

// wantRefusal compares the error of a call with want.
func wantRefusal(t *testing.T, err error, want refusal) {
	t.Helper()
	if got := refusalOf(err); got != want {
		t.Errorf("got %d %s, want %d %s\n%v", got.status, got.code, want.status, want.code, err)
	}
}

// wantStrings compares lists.
func wantStrings(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func pointer[T any](v T) *T { return &v }

// quoteAny returns the JSON of anything, for messages.
func quoteAny(t *testing.T, v any) string {
	t.Helper()
	return string(must(json.Marshal(v))(t))
}
