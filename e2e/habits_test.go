package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// TestEDMEntity writes and reads the entity type of the SDK, as most programs do.
func TestEDMEntity(t *testing.T) {
	_, client := newTable(t)
	sent := aztables.EDMEntity{
		Entity: aztables.Entity{PartitionKey: "pencils", RowKey: "id-003"},
		Properties: map[string]any{
			"Product": "Ticonderoga Pencils", "Price": 5.5, "Count": aztables.EDMInt64(12345678901234), "Stock": int32(15), "OnSale": true,
			"ProductGUID":  aztables.EDMGUID("a455c695-df98-5678-aaaa-81d3367e5a34"),
			"DateReceived": aztables.EDMDateTime(time.Date(2021, 8, 21, 1, 1, 0, 123456700, time.UTC)),
			"ProductCode":  aztables.EDMBinary("somebinaryvalue"),
		},
	}
	added := must(client.AddEntity(t.Context(), must(json.Marshal(sent))(t), nil))(t)
	var got aztables.EDMEntity
	for name, read := range map[string]func() []byte{
		"get": func() []byte { return must(client.GetEntity(t.Context(), "pencils", "id-003", nil))(t).Value },
		"list": func() []byte {
			return must(client.NewListEntitiesPager(nil).NextPage(t.Context()))(t).Entities[0]
		},
	} {
		if err := json.Unmarshal(read(), &got); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got.Properties, sent.Properties) || got.ETag != string(added.ETag) || time.Since(time.Time(got.Timestamp)).Abs() > time.Hour {
			t.Errorf("%s: got %+v, want %+v", name, got, sent)
		}
	}
}

// TestEcho writes an entity as it was read, metadata and Timestamp included, with each
// kind of write.
func TestEcho(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "r", property{"L", "Edm.Int64", `"7"`}, property{"S", "", `"s"`}), nil))(t)
	want := custom(get(t, client, "p", "r"))
	for _, level := range []aztables.MetadataFormat{aztables.MetadataFormatNone, aztables.MetadataFormatMinimal, aztables.MetadataFormatFull} {
		text := must(client.GetEntity(t.Context(), "p", "r", &aztables.GetEntityOptions{Format: &level}))(t).Value
		if level == aztables.MetadataFormatNone { // which has no types
			want["L"] = "7"
			delete(want, "L@odata.type")
		}
		for name, do := range map[string]func(*testing.T, *aztables.Client, []byte, *azcore.ETag) error{
			"merge": update(aztables.UpdateModeMerge), "replace": update(aztables.UpdateModeReplace),
			"upsert by merge": upsert(aztables.UpdateModeMerge), "upsert by replace": upsert(aztables.UpdateModeReplace),
		} {
			if err := do(t, client, text, nil); err != nil {
				t.Errorf("%s, %s: %v", level, name, err)
			}
		}
		must(client.SubmitTransaction(t.Context(), []aztables.TransactionAction{action(opUpdateReplace, text, azcore.ETagAny)}, nil))(t)
		if got := custom(get(t, client, "p", "r")); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", level, got, want)
		}
	}
}

// TestLongFilters queries many keys at once, as programs do for joins.
func TestLongFilters(t *testing.T) {
	_, client := newTable(t)
	all := fill(t, client, 500)
	for _, n := range []int{1, 15, 16, 100, 300} {
		var terms, want []string
		for i := range n {
			row := all[i*499/max(1, n-1)]
			terms, want = append(terms, "RowKey eq '"+row+"'"), append(want, row)
		}
		wantStrings(t, fmt.Sprintf("%d terms", n), rows(t, client, strings.Join(terms, " or ")), want)
	}
}

// TestLargeEntities reads pages of entities of the maximum size.
func TestLargeEntities(t *testing.T) {
	_, client := newTable(t)
	var large []property
	for i := range 15 {
		large = append(large, property{fmt.Sprintf("B%d", i), "Edm.Binary", quote(base64.StdEncoding.EncodeToString(make([]byte, 64<<10)))})
	}
	var want []string
	for i := range 12 {
		want = append(want, fmt.Sprintf("r%02d", i))
		must(client.AddEntity(t.Context(), entity("p", want[i], large...), nil))(t)
	}
	wantStrings(t, "rows", rows(t, client, ""), want)
	wantStrings(t, "rows by a filter", rows(t, client, "B0 ne X'00'"), want)
	selected, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{Select: pointer("RowKey")})
	if err != nil {
		t.Fatal(err)
	}
	wantStrings(t, "rows alone", selected, want)
}

// TestMissingSelection selects a property that some entities lack.
func TestMissingSelection(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "with", property{"A", "", "1"}), nil))(t)
	must(client.AddEntity(t.Context(), entity("p", "without", property{"B", "", "1"}), nil))(t)
	page := must(client.NewListEntitiesPager(&aztables.ListEntitiesOptions{Select: pointer("A,RowKey")}).NextPage(t.Context()))(t)
	if len(page.Entities) != 2 {
		t.Fatalf("got %d entities, want 2", len(page.Entities))
	}
	if m := members(t, page.Entities[0]); m["A"] != 1.0 {
		t.Errorf("got %v", m)
	}
	m := members(t, page.Entities[1])
	if v, there := m["A"]; !there || v != nil || m["B"] != nil {
		t.Errorf("got %v, want A to be null", m)
	}
}

// TestCancel cancels a listing and writes, and then continues.
func TestCancel(t *testing.T) {
	_, client := newTable(t)
	all := fill(t, client, 2000)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := queryRows(ctx, client, nil)
			done <- err
		}()
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if got := rows(t, client, ""); len(got) != len(all) {
		t.Errorf("%d rows, want %d", len(got), len(all))
	}
}

// TestTableInUse deletes and recreates a table during writes to it.
func TestTableInUse(t *testing.T) {
	service := shared.service(t)
	name := tableName()
	must(service.CreateTable(t.Context(), name, nil))(t)
	client := service.NewClient(name)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for w := range 4 {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := client.UpsertEntity(ctx, entity("p", fmt.Sprintf("%d-%d", w, i)), nil)
				if got := refusalOf(err); err != nil && ctx.Err() == nil && got != (refusal{404, "TableNotFound"}) {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	for range 20 {
		must(service.DeleteTable(t.Context(), name, nil))(t)
		must(service.CreateTable(t.Context(), name, nil))(t)
	}
	stop()
	running.Wait()
	must(service.DeleteTable(t.Context(), name, nil))(t)
}

// TestOffsets sends times with an offset and without a zone.
func TestOffsets(t *testing.T) {
	_, client := newTable(t)
	for sent, want := range map[string]string{
		"2026-01-02T03:04:05+02:00": "2026-01-02T01:04:05Z",
		"2026-01-02T03:04:05":       "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.12Z":   "2026-01-02T03:04:05.12Z",
	} {
		must(client.UpsertEntity(t.Context(), entity("p", "r", property{"T", "Edm.DateTime", quote(sent)}), nil))(t)
		if got := get(t, client, "p", "r")["T"]; got != want {
			t.Errorf("%s: got %v, want %s", sent, got, want)
		}
	}
}
