package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

func TestTableNames(t *testing.T) {
	service := shared.service(t)
	long := strings.Repeat("a", 63)
	for _, c := range []struct {
		name, table string
		want        refusal
	}{
		{"shortest", "abc", refusal{}},
		{"longest", long, refusal{}},
		{"digits behind the first letter", "A1234567890", refusal{}},
		{"too short", "ab", refusal{400, "OutOfRangeInput"}},
		{"too long", long + "a", refusal{400, "OutOfRangeInput"}},
		{"digit first", "1abc", refusal{400, "InvalidResourceName"}},
		{"underscore", "my_table", refusal{400, "InvalidResourceName"}},
		{"hyphen", "my-table", refusal{400, "InvalidResourceName"}},
		{"blank", "my table", refusal{400, "InvalidResourceName"}},
		{"letters of another script", "表表表", refusal{400, "InvalidResourceName"}},
		{"reserved", "tables", refusal{400, "InvalidInput"}},
		{"reserved in other case", "TaBLes", refusal{400, "InvalidInput"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp, err := service.CreateTable(t.Context(), c.table, nil)
			wantRefusal(t, err, c.want)
			if err != nil {
				return
			}
			if resp.TableName == nil || *resp.TableName != c.table {
				t.Errorf("the response names %v, want %s", resp.TableName, c.table)
			}
			must(service.DeleteTable(t.Context(), c.table, nil))(t)
		})
	}
}

func TestTableLifecycle(t *testing.T) {
	service := shared.service(t)
	name := "Case" + tableName()
	must(service.CreateTable(t.Context(), name, nil))(t)
	for _, again := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
		_, err := service.CreateTable(t.Context(), again, nil)
		wantRefusal(t, err, refusal{409, "TableAlreadyExists"})
	}
	upper := service.NewClient(strings.ToUpper(name))
	must(upper.AddEntity(t.Context(), entity("p", "r"), nil))(t)
	get(t, service.NewClient(strings.ToLower(name)), "p", "r")
	wantStrings(t, "tables of this name", listTables(t, "TableName eq '"+name+"'", 0), []string{name})

	must(service.DeleteTable(t.Context(), strings.ToLower(name), nil))(t)
	_, err := service.DeleteTable(t.Context(), name, nil)
	wantRefusal(t, err, refusal{404, "ResourceNotFound"})
	wantStrings(t, "tables of this name", listTables(t, "TableName eq '"+name+"'", 0), []string{})

	// A recreated table is empty.
	must(service.CreateTable(t.Context(), name, nil))(t)
	wantStrings(t, "rows", rows(t, service.NewClient(name), ""), []string{})
	must(service.DeleteTable(t.Context(), name, nil))(t)
}

// listTables returns the names of all pages of tables.
func listTables(t *testing.T, filter string, top int32) []string {
	t.Helper()
	o := &aztables.ListTablesOptions{Filter: &filter}
	if top > 0 {
		o.Top = &top
	}
	names := []string{}
	for pager := shared.service(t).NewListTablesPager(o); pager.More(); {
		page := must(pager.NextPage(t.Context()))(t)
		if top > 0 && len(page.Tables) > int(top) {
			t.Errorf("a page of %d tables, want at most %d", len(page.Tables), top)
		}
		for _, table := range page.Tables {
			names = append(names, *table.Name)
		}
	}
	return names
}

func TestListTables(t *testing.T) {
	service := shared.service(t)
	prefix := "List" + strings.ToLower(tableName())
	var want []string
	for i := range 25 {
		want = append(want, fmt.Sprintf("%sx%02d", prefix, i))
		must(service.CreateTable(t.Context(), want[i], nil))(t)
	}
	filter := fmt.Sprintf("TableName ge '%s' and TableName lt '%s{'", prefix, prefix)
	for _, top := range []int32{0, 1, 7, 25, 1000} {
		wantStrings(t, fmt.Sprintf("with $top %d", top), listTables(t, filter, top), want)
	}
	wantStrings(t, "from the middle", listTables(t, fmt.Sprintf("TableName gt '%s' and TableName lt '%s{'", want[19], prefix), 0), want[20:])
	for _, name := range want {
		must(service.DeleteTable(t.Context(), name, nil))(t)
	}
}

// TestMissingTable uses a table that does not exist, and one with an invalid name.
func TestMissingTable(t *testing.T) {
	for _, c := range []struct {
		table string
		want  refusal
	}{
		{"NoSuchTable", refusal{404, "TableNotFound"}},
		{"no_such", refusal{400, "InvalidResourceName"}},
	} {
		client := shared.service(t).NewClient(c.table)
		for name, call := range map[string]func() error{
			"insert": func() error { _, err := client.AddEntity(t.Context(), entity("p", "r"), nil); return err },
			"get":    func() error { _, err := client.GetEntity(t.Context(), "p", "r", nil); return err },
			"upsert": func() error { _, err := client.UpsertEntity(t.Context(), entity("p", "r"), nil); return err },
			"update": func() error { _, err := client.UpdateEntity(t.Context(), entity("p", "r"), nil); return err },
			"delete": func() error { _, err := client.DeleteEntity(t.Context(), "p", "r", nil); return err },
			"query":  func() error { _, err := queryRows(t.Context(), client, nil); return err },
		} {
			t.Run(c.table+"/"+name, func(t *testing.T) { wantRefusal(t, call(), c.want) })
		}
	}
}
