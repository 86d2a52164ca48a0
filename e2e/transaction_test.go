package e2e

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// actions are the operations of a transaction.
type actions = []aztables.TransactionAction

func action(kind aztables.TransactionType, text []byte, tag ...azcore.ETag) aztables.TransactionAction {
	a := aztables.TransactionAction{ActionType: kind, Entity: text}
	if len(tag) > 0 {
		a.IfMatch = &tag[0]
	}
	return a
}

const (
	opAdd           = aztables.TransactionTypeAdd
	opDelete        = aztables.TransactionTypeDelete
	opInsertMerge   = aztables.TransactionTypeInsertMerge
	opInsertReplace = aztables.TransactionTypeInsertReplace
	opUpdateMerge   = aztables.TransactionTypeUpdateMerge
	opUpdateReplace = aztables.TransactionTypeUpdateReplace
)

// TestTransaction runs each kind of write in one transaction.
func TestTransaction(t *testing.T) {
	_, client := newTable(t)
	tags := map[string]azcore.ETag{}
	for _, row := range []string{"deleted", "merged", "replaced", "upserted by merge", "upserted by replace"} {
		tags[row] = must(client.AddEntity(t.Context(), entity("p", row, property{"A", "", "1"}, property{"B", "", `"old"`}), nil))(t).ETag
	}
	sent := func(row string) []byte {
		return entity("p", row, property{"B", "", `"new"`}, property{"C", "", "3"})
	}
	must(client.SubmitTransaction(t.Context(), actions{
		action(opAdd, sent("added")),
		action(opDelete, sent("deleted")),
		action(opUpdateMerge, sent("merged"), tags["merged"]),
		action(opUpdateReplace, sent("replaced"), azcore.ETagAny),
		action(opInsertMerge, sent("upserted by merge")),
		action(opInsertReplace, sent("upserted by replace")),
		action(opInsertMerge, sent("made by merge")),
		action(opInsertReplace, sent("made by replace")),
	}, nil))(t)
	for row, want := range map[string]map[string]any{
		"added": replaced, "merged": merged, "replaced": replaced, "upserted by merge": merged, "upserted by replace": replaced,
		"made by merge": replaced, "made by replace": replaced,
	} {
		if got := custom(get(t, client, "p", row)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", row, got, want)
		}
	}
	_, err := client.GetEntity(t.Context(), "p", "deleted", nil)
	wantRefusal(t, err, refusal{404, "ResourceNotFound"})
}

// adds returns n inserts.
func adds(n int, properties ...property) []aztables.TransactionAction {
	var all []aztables.TransactionAction
	for i := range n {
		all = append(all, action(opAdd, entity("p", fmt.Sprintf("r%03d", i), properties...)))
	}
	return all
}

// TestRefusedTransactions runs transactions that fail at one operation, and checks that they
// changed nothing.
func TestRefusedTransactions(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "there", property{"V", "", "1"}), nil))(t)
	stale := azcore.ETag(`W/"datetime'2001-01-01T00%3A00%3A00Z'"`)
	e := func(row string) []byte { return entity("p", row) }
	large := property{"V", "Edm.Binary", quote(base64.StdEncoding.EncodeToString(make([]byte, 64<<10)))}
	for _, c := range []struct {
		name    string
		actions []aztables.TransactionAction
		status  int
		code    string
		prefix  string // of the error message
	}{
		{"conflict at the end", append(adds(9), action(opAdd, e("there"))), 409, "EntityAlreadyExists", "9:The specified entity already exists."},
		{"conflict in the middle", append(actions{action(opAdd, e("x")), action(opAdd, e("there"))}, adds(3)...), 409, "EntityAlreadyExists", "1:The"},
		{"conflict alone", actions{action(opAdd, e("there"))}, 409, "EntityAlreadyExists", "The specified entity already exists."},
		{
			"stale",
			actions{action(opAdd, e("x")), action(opUpdateMerge, e("there"), stale)},
			412, "UpdateConditionNotSatisfied", "1:The update condition specified in the request was not satisfied.",
		},
		{"stale delete", actions{action(opAdd, e("x")), action(opAdd, e("y")), action(opDelete, e("there"), stale)}, 412, "UpdateConditionNotSatisfied", "2:"},
		{
			"missing",
			actions{action(opAdd, e("x")), action(opUpdateReplace, e("missing"), azcore.ETagAny)},
			404, "ResourceNotFound", "1:The specified resource does not exist.",
		},
		{"missing delete", actions{action(opDelete, e("missing")), action(opAdd, e("x"))}, 404, "ResourceNotFound", "0:"},
		{
			"same row twice",
			actions{action(opAdd, e("x")), action(opInsertMerge, e("x"))},
			400, "InvalidDuplicateRow", "1:The batch request contains multiple changes with same row key.",
		},
		{
			"two partitions",
			actions{action(opAdd, e("x")), action(opAdd, entity("q", "x"))},
			400, "CommandsInBatchActOnDifferentPartitions", "1:All commands in a batch must operate on same entity group.",
		},
		{"101 operations", adds(101), 400, "InvalidInput", "99:The batch request operation exceeds the maximum 100 changes per change set."},
		{"a bad name", actions{action(opAdd, e("x")), action(opAdd, entity("p", "y", property{"1", "", "1"}))}, 400, "PropertyNameInvalid", "1:"},
		{"a bad key", actions{action(opAdd, e("x")), action(opAdd, e("a#b"))}, 400, "OutOfRangeInput", "1:"},
		{
			"a large value",
			actions{action(opAdd, e("x")), action(opAdd, entity("p", "y", property{"V", "", quote(strings.Repeat("x", 32769))}))},
			400, "PropertyValueTooLarge", "1:",
		},
		{"a large body", adds(64, large), 413, "RequestBodyTooLarge", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.SubmitTransaction(t.Context(), c.actions, nil)
			checkTransactionError(t, err, c.status, c.code, c.prefix)
			wantStrings(t, "rows", rows(t, client, ""), []string{"there"})
		})
	}
	t.Run("no table", func(t *testing.T) {
		_, err := shared.service(t).NewClient("NoSuchTable").SubmitTransaction(t.Context(), adds(2), nil)
		checkTransactionError(t, err, 404, "TableNotFound", "0:The table specified does not exist.")
	})
	t.Run("100 operations", func(t *testing.T) {
		must(client.SubmitTransaction(t.Context(), adds(100), nil))(t)
		if n := len(rows(t, client, "")); n != 101 {
			t.Errorf("%d rows, want 101", n)
		}
	})
}

// checkTransactionError checks the response to the failed operation, which the SDK returns as
// text only.
func checkTransactionError(t *testing.T, err error, status int, code, prefix string) {
	t.Helper()
	got := refusalOf(err)
	if prefix == "" { // the transaction as a whole was refused
		wantRefusal(t, err, refusal{status, code})
		return
	}
	if got.status != 202 {
		t.Fatalf("got %d %s, want 202\n%v", got.status, got.code, err)
	}
	for _, want := range []string{fmt.Sprintf("HTTP/1.1 %d ", status), `"code":"` + code + `"`, `"value":"` + prefix} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in the response\n%v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "HTTP/1.1 "); n != 1 {
		t.Errorf("%d operations in the response, want 1\n%v", n, err)
	}
}

// TestTransactionKeys sends unusual keys. The SDK copies the keys of the body unchanged to the
// URL of an operation, so the body has doubled quotes, as in the SDK's entity type. The URL
// determines the key.
func TestTransactionKeys(t *testing.T) {
	_, client := newTable(t)
	for i, key := range oddKeys() {
		t.Run(fmt.Sprintf("%d %.20q", i, key), func(t *testing.T) {
			doubled := strings.ReplaceAll(key, "'", "''")
			v := func(row string, n int) []byte {
				return entity(doubled, row, property{"V", "", fmt.Sprint(n)})
			}
			must(client.SubmitTransaction(t.Context(), actions{
				action(opInsertReplace, v(doubled, 1)),
				action(opInsertMerge, v("other", 2)),
			}, nil))(t)
			if got := get(t, client, key, key); got["V"] != 1.0 || got["RowKey"] != key {
				t.Errorf("got V %v of %v, want 1", got["V"], got["RowKey"])
			}
			must(client.SubmitTransaction(t.Context(), actions{
				action(opUpdateMerge, v(doubled, 3), azcore.ETagAny),
				action(opDelete, v("other", 0)),
			}, nil))(t)
			if got := get(t, client, key, key); got["V"] != 3.0 {
				t.Errorf("got V %v, want 3", got["V"])
			}
		})
	}
}
