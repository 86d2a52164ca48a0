package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// oddKeys returns valid keys with characters that need care in URLs, headers or JSON.
func oddKeys() []string {
	return []string{
		" ", "  ", " leading", "trailing ", "in side",
		"'", "''", "it's", "'quoted'", "a''b", "',RowKey='", "x',RowKey='y') or (",
		`"`, `"double"`, "%", "%%", "%20", "%2F", "%27", "100%", "+", "a+b", "&", "a&b=c", "=", ";", ",", "(", ")", "()", "a(b)c",
		"@", "*", "$", "!", "~", "`", "^", "|", "<", ">", "[x]", "{y}", ":", "a:b", "-", "_", ".", "..", "...",
		"$batch", "Tables", "null", "true", "0", "00", "-1",
		"é", "e\u0301", "grüße", "表", "Ω", "שלום", "😀", "𐍈", "\ue000", "\uffee", "\u2028", "\ufeffbom",
		"\u00a0", "\u3000", "\u200b", "A", "a",
		strings.Repeat("k", 1024), strings.Repeat("表", 512),
	}
}

// TestOddKeys runs each operation on keys with unusual characters.
func TestOddKeys(t *testing.T) {
	_, client := newTable(t)
	for i, key := range oddKeys() {
		t.Run(fmt.Sprintf("%d %.20q", i, key), func(t *testing.T) {
			for _, keys := range [][2]string{{key, "row"}, {"partition", key}, {key, key}} {
				oddKey(t, client, keys[0], keys[1])
			}
		})
	}
}

func oddKey(t *testing.T, client *aztables.Client, partition, row string) {
	t.Helper()
	v := func(n int) []byte { return entity(partition, row, property{"V", "", fmt.Sprint(n)}) }
	check := func(what string, want float64) {
		t.Helper()
		m := get(t, client, partition, row)
		if m["PartitionKey"] != partition || m["RowKey"] != row || m["V"] != want {
			t.Errorf("after %s: got %.100q, %.100q, V %v, want V %v", what, m["PartitionKey"], m["RowKey"], m["V"], want)
		}
	}
	added := must(client.AddEntity(t.Context(), v(1), nil))(t)
	check("the insert", 1)
	must(client.UpdateEntity(t.Context(), v(2), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeMerge, IfMatch: &added.ETag}))(t)
	check("the merge", 2)
	must(client.UpdateEntity(t.Context(), v(3), &aztables.UpdateEntityOptions{UpdateMode: aztables.UpdateModeReplace}))(t)
	check("the replace", 3)
	must(client.UpsertEntity(t.Context(), v(4), nil))(t)
	check("the upsert", 4)
	doubled := func(s string) string { return strings.ReplaceAll(s, "'", "''") }
	filter := fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s' and V eq 4", doubled(partition), doubled(row))
	wantStrings(t, filter, rows(t, client, filter), []string{row})
	must(client.DeleteEntity(t.Context(), partition, row, nil))(t)
	_, err := client.GetEntity(t.Context(), partition, row, nil)
	wantRefusal(t, err, refusal{404, "ResourceNotFound"})
}

// TestKeyOrder checks that keys are in the order of their UTF-16 code units.
func TestKeyOrder(t *testing.T) {
	_, client := newTable(t)
	want := []string{"", " ", "!", "'", "A", "B", "Z", "a", "aa", "b", "é", "表", "𐍈", "😀", "\ue000", "\uffee"}
	for _, row := range slices.Backward(want) {
		must(client.AddEntity(t.Context(), entity("p", row), nil))(t)
	}
	wantStrings(t, "rows", rows(t, client, ""), want)
	wantStrings(t, "rows from 𐍈", rows(t, client, "RowKey ge '𐍈'"), want[12:])
	got, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{Top: pointer(int32(1))})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "rows by pages of one", got, want)
}

// TestEmptyKeys writes entities with one or two empty keys. It reads them by queries, because
// the SDK refuses an empty PartitionKey in a URL.
func TestEmptyKeys(t *testing.T) {
	_, client := newTable(t)
	for _, partition := range []string{"", "p"} {
		for _, row := range []string{"", "r"} {
			must(client.AddEntity(t.Context(), entity(partition, row, property{"V", "", "1"}), nil))(t)
			filter := fmt.Sprintf("PartitionKey eq '%s' and RowKey eq '%s'", partition, row)
			wantStrings(t, filter, rows(t, client, filter), []string{row})
		}
	}
	get(t, client, "p", "")
	must(client.UpsertEntity(t.Context(), entity("p", "", property{"V", "", "2"}), nil))(t)
	must(client.DeleteEntity(t.Context(), "p", "", nil))(t)
	wantStrings(t, "rows", rows(t, client, ""), []string{"", "r", "r"})
}

func TestRefusedKeys(t *testing.T) {
	_, client := newTable(t)
	for _, c := range []struct {
		name, key string
		want      refusal
	}{
		{"slash", "a/b", refusal{400, "OutOfRangeInput"}},
		{"backslash", `a\b`, refusal{400, "OutOfRangeInput"}},
		{"hash", "a#b", refusal{400, "OutOfRangeInput"}},
		{"question mark", "a?b", refusal{400, "OutOfRangeInput"}},
		{"tab", "a\tb", refusal{400, "OutOfRangeInput"}},
		{"line feed", "a\nb", refusal{400, "OutOfRangeInput"}},
		{"zero", "a\x00b", refusal{400, "OutOfRangeInput"}},
		{"delete", "a\x7fb", refusal{400, "OutOfRangeInput"}},
		{"next line", "a\u0085b", refusal{400, "OutOfRangeInput"}},
		{"too long", strings.Repeat("k", 1025), refusal{400, "PropertyValueTooLarge"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.AddEntity(t.Context(), entity(c.key, "r"), nil)
			wantRefusal(t, err, c.want)
			_, err = client.AddEntity(t.Context(), entity("p", c.key), nil)
			wantRefusal(t, err, c.want)
		})
	}
	t.Run("a number", func(t *testing.T) {
		_, err := client.AddEntity(t.Context(), []byte(`{"PartitionKey":"p","RowKey":1}`), nil)
		wantRefusal(t, err, refusal{400, "InvalidInput"})
	})
}
