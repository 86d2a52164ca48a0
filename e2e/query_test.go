package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// pagedRows is the number of rows of more than three full pages.
const pagedRows = 3210

// fill inserts n entities in partitions of different sizes, by transactions, and returns their
// row keys in order.
func fill(t *testing.T, client *aztables.Client, n int) []string {
	t.Helper()
	var all []string
	var batch []aztables.TransactionAction
	partition := ""
	flush := func() {
		if len(batch) > 0 {
			must(client.SubmitTransaction(t.Context(), batch, nil))(t)
		}
		batch = nil
	}
	for i := range n {
		if p := fmt.Sprintf("p%03d", i*i%7+i/500*7); p > partition {
			flush()
			partition = p
		}
		row := fmt.Sprintf("r%05d", i)
		all = append(all, row)
		batch = append(batch, aztables.TransactionAction{
			ActionType: aztables.TransactionTypeAdd,
			Entity:     entity(partition, row, property{"Number", "", fmt.Sprint(i)}, property{"Even", "", fmt.Sprint(i%2 == 0)}, property{"Text", "", `"text"`}),
		})
		if len(batch) == 100 {
			flush()
		}
	}
	flush()
	return all
}

func TestPaging(t *testing.T) {
	_, client := newTable(t)
	all := fill(t, client, pagedRows)
	var even []string
	for i, row := range all {
		if i%2 == 0 {
			even = append(even, row)
		}
	}
	for _, c := range []struct {
		name    string
		options aztables.ListEntitiesOptions
		want    []string
		perPage int
	}{
		{"all", aztables.ListEntitiesOptions{}, all, 1000},
		{"full pages", aztables.ListEntitiesOptions{Top: pointer(int32(1000))}, all, 1000},
		{"small pages", aztables.ListEntitiesOptions{Top: pointer(int32(77))}, all, 77},
		{"a filter on no key", aztables.ListEntitiesOptions{Filter: pointer("Even eq true")}, even, 1000},
		{"a filter and small pages", aztables.ListEntitiesOptions{Filter: pointer("Even eq true"), Top: pointer(int32(100))}, even, 100},
		{"the last one", aztables.ListEntitiesOptions{Filter: pointer(fmt.Sprintf("Number eq %d", pagedRows-1))}, all[pagedRows-1:], 1000},
		{"a range of rows", aztables.ListEntitiesOptions{Filter: pointer("RowKey ge 'r00900' and RowKey lt 'r02100'")}, all[900:2100], 1000},
		{"selected", aztables.ListEntitiesOptions{Select: pointer("RowKey")}, all, 1000},
		{"nothing", aztables.ListEntitiesOptions{Filter: pointer("Number lt 0")}, []string{}, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := []string{}
			for pager := client.NewListEntitiesPager(&c.options); pager.More(); {
				page := must(pager.NextPage(t.Context()))(t)
				if len(page.Entities) > c.perPage {
					t.Errorf("a page of %d entities, want at most %d", len(page.Entities), c.perPage)
				}
				for _, e := range page.Entities {
					got = append(got, members(t, e)["RowKey"].(string))
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %d rows, want %d; first difference at %d", len(got), len(c.want), firstDifference(got, c.want))
			}
		})
	}
}

func firstDifference(a, b []string) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestResume uses the continuation of one client in another one, after the deletion of the
// entity that it names.
func TestResume(t *testing.T) {
	name, client := newTable(t)
	all := fill(t, client, 30)
	page := must(client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Top: pointer(int32(10))}).NextPage(t.Context()))(t)
	if page.NextPartitionKey == nil || page.NextRowKey == nil {
		t.Fatalf("no continuation after %d of 30 entities", len(page.Entities))
	}
	for _, m := range queryAll(t, client, "RowKey ge 'r00010' and RowKey lt 'r00012'") {
		must(client.DeleteEntity(t.Context(), m["PartitionKey"].(string), m["RowKey"].(string), nil))(t)
	}
	got, err := queryRows(t.Context(), shared.service(t).NewClient(name),
		&aztables.ListEntitiesOptions{NextPartitionKey: page.NextPartitionKey, NextRowKey: page.NextRowKey})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "the rows that follow", got, all[12:])
}

// queryAll returns the entities of a query.
func queryAll(t *testing.T, client *aztables.Client, filter string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for pager := client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter}); pager.More(); {
		for _, e := range must(pager.NextPage(t.Context()))(t).Entities {
			all = append(all, members(t, e))
		}
	}
	return all
}

// zoo inserts one entity for each type of V and one without V.
func zoo(t *testing.T, client *aztables.Client) {
	t.Helper()
	for _, v := range []struct{ row, edm, json string }{
		{"bin", "Edm.Binary", `"AQL/"`},
		{"boolF", "", "false"},
		{"boolT", "", "true"},
		{"dbl1.5", "", "1.5"},
		{"dbl5", "Edm.Double", "5"},
		{"dblNaN", "Edm.Double", `"NaN"`},
		{"guid", "Edm.Guid", `"00000000-0000-0000-0000-000000000001"`},
		{"int-7", "", "-7"},
		{"int5", "", "5"},
		{"long5", "Edm.Int64", `"5"`},
		{"longBig", "Edm.Int64", `"9007199254740993"`},
		{"none", "", "null"},
		{"str", "", `"b"`},
		{"strEmpty", "", `""`},
		{"time", "Edm.DateTime", `"2026-01-02T03:04:05.0000006Z"`},
	} {
		must(client.AddEntity(t.Context(), entity("z", v.row, property{"V", v.edm, v.json}, property{"Name", "", quote(v.row)}), nil))(t)
	}
}

func TestFilters(t *testing.T) {
	_, client := newTable(t)
	zoo(t, client)
	all := rows(t, client, "")
	without := func(gone ...string) string {
		return strings.Join(slices.DeleteFunc(slices.Clone(all), func(r string) bool { return slices.Contains(gone, r) }), " ")
	}
	for _, c := range []struct{ filter, want string }{
		{"V eq 'b'", "str"},
		{"V ge ''", "str strEmpty"},
		{"V lt ''", ""},
		{"V eq ''", "strEmpty"},
		{"V gt 'a' and V lt 'c'", "str"},
		{"V eq true", "boolT"},
		{"V ne true", without("boolT", "none")},
		{"V eq 5", "dbl5 int5 long5"},
		{"V eq 5.0", "dbl5 int5 long5"},
		{"V eq 5L", "dbl5 int5 long5"},
		{"V gt 1.4 and V lt 1.6", "dbl1.5"},
		{"V lt 0", "int-7"},
		{"V le -7", "int-7"},
		{"V eq 9007199254740993L", "longBig"},
		{"V gt 9007199254740992L", "longBig"},
		{"V eq datetime'2026-01-02T03:04:05.0000006Z'", "time"},
		{"V gt datetime'2026-01-02T03:04:05.0000005Z'", "time"},
		{"V lt datetime'2026-01-02T03:04:05.0000006Z'", ""},
		{"V eq guid'00000000-0000-0000-0000-000000000001'", "guid"},
		{"V eq X'0102ff'", "bin"},
		{"V eq binary'0102FF'", "bin"},
		{"not (V eq 'b')", without("str")},
		{"not (V lt datetime'2026-01-02T03:04:06Z')", without("time")},
		{"Missing ne 'x'", ""},
		{"not (Missing eq 'x')", without()},
		{"'b' eq V", "str"},
		{"5 lt V and V le 9007199254740993L", "longBig"},
		{"(V eq 'b')or(V eq true)", "boolT str"},
		{"V eq 'b' or V eq true and V eq false", "str"},
		{"(V eq 'b' or V eq true) and Name eq 'boolT'", "boolT"},
		{"PartitionKey eq 'z' and RowKey eq 'guid'", "guid"},
		{"PartitionKey eq 'z' and RowKey ge 'str' and RowKey lt 'strF'", "str strEmpty"},
		{"PartitionKey lt 'z'", ""},
		{"PartitionKey eq 'z' and (RowKey eq 'none' or RowKey eq 'bin')", "bin none"},
		{"RowKey ne 'str'", without("str")},
		{"Timestamp gt datetime'2020-01-01T00:00:00Z'", without()},
		{"Timestamp lt datetime'2020-01-01T00:00:00Z'", ""},
		{"true", without()},
		{"false", ""},
		{"(true and RowKey eq 'bin') or (false or RowKey eq 'str')", "bin str"},
		{"V", "boolT"},
		{"not V", without("boolT")},
		{"Name eq 'bin' or Name eq 'str' or Name eq 'none' or Name eq 'time' or Name eq 'guid'", "bin guid none str time"},
	} {
		t.Run(c.filter, func(t *testing.T) {
			if got := strings.Join(rows(t, client, c.filter), " "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRefusedQueries(t *testing.T) {
	_, client := newTable(t)
	zoo(t, client)
	invalid := refusal{400, "InvalidInput"}
	for _, c := range []struct {
		filter string
		top    int32
		want   refusal
	}{
		{"aaa bbb ccc", 0, invalid},
		{"V eq 'b", 0, invalid},
		{"V eq", 0, invalid},
		{"(V eq 'b'", 0, invalid},
		{"V eq null", 0, invalid},
		{"V lt null", 0, invalid},
		{"PartitionKey eq 5", 0, invalid},
		{"1 eq 1", 0, refusal{501, "NotImplemented"}},
		{"V eq Name", 0, refusal{501, "NotImplemented"}},
		{"startswith(V,'b')", 0, refusal{501, "NotImplemented"}},
		{"", 1001, invalid},
		{"", -1, invalid},
		{"", 1000, refusal{}},
	} {
		t.Run(fmt.Sprintf("%s,%d", c.filter, c.top), func(t *testing.T) {
			o := &aztables.ListEntitiesOptions{}
			if c.filter != "" {
				o.Filter = &c.filter
			}
			if c.top != 0 {
				o.Top = &c.top
			}
			_, err := queryRows(t.Context(), client, o)
			wantRefusal(t, err, c.want)
		})
	}
}

func TestSelect(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "r", property{"A", "", "1"}, property{"B", "Edm.Int64", `"2"`}, property{"C", "", `"3"`}), nil))(t)
	for _, c := range []struct {
		names string
		want  []string
	}{
		{"A", []string{"A"}},
		{"A,B", []string{"A", "B", "B@odata.type"}},
		{"RowKey,C", []string{"RowKey", "C"}},
		{"PartitionKey,RowKey,Timestamp", []string{"PartitionKey", "RowKey", "Timestamp"}},
		{"*", []string{"PartitionKey", "RowKey", "Timestamp", "A", "B", "B@odata.type", "C"}},
	} {
		t.Run(c.names, func(t *testing.T) {
			page := must(client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: &c.names}).NextPage(t.Context()))(t)
			if len(page.Entities) != 1 {
				t.Fatalf("got %d entities, want 1", len(page.Entities))
			}
			var got []string
			for name, v := range members(t, page.Entities[0]) {
				if !strings.HasPrefix(name, "odata.") && name != "Timestamp@odata.type" && v != nil {
					got = append(got, name)
				}
			}
			slices.Sort(got)
			slices.Sort(c.want)
			wantStrings(t, "members", got, c.want)
		})
	}
}
