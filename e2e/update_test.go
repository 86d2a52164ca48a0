package e2e

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// write is a kind of write; tag is nil if the SDK sends none.
type write struct {
	name string
	do   func(t *testing.T, client *aztables.Client, text []byte, tag *azcore.ETag) error
	// the result for A and B when B and C are written
	want map[string]any
}

var (
	replaced = map[string]any{"B": "new", "C": 3.0}
	merged   = map[string]any{"A": 1.0, "B": "new", "C": 3.0}
)

func update(mode aztables.UpdateMode) func(*testing.T, *aztables.Client, []byte, *azcore.ETag) error {
	return func(t *testing.T, client *aztables.Client, text []byte, tag *azcore.ETag) error {
		_, err := client.UpdateEntity(t.Context(), text, &aztables.UpdateEntityOptions{UpdateMode: mode, IfMatch: tag})
		return err
	}
}

func upsert(mode aztables.UpdateMode) func(*testing.T, *aztables.Client, []byte, *azcore.ETag) error {
	return func(t *testing.T, client *aztables.Client, text []byte, _ *azcore.ETag) error {
		_, err := client.UpsertEntity(t.Context(), text, &aztables.UpsertEntityOptions{UpdateMode: mode})
		return err
	}
}

func remove(t *testing.T, client *aztables.Client, text []byte, tag *azcore.ETag) error {
	m := members(t, text)
	_, err := client.DeleteEntity(t.Context(), m["PartitionKey"].(string), m["RowKey"].(string), &aztables.DeleteEntityOptions{IfMatch: tag})
	return err
}

func insert(t *testing.T, client *aztables.Client, text []byte, _ *azcore.ETag) error {
	_, err := client.AddEntity(t.Context(), text, nil)
	return err
}

// TestWrites runs each kind of write on an existing and on a missing entity, with each kind
// of ETag.
func TestWrites(t *testing.T) {
	_, client := newTable(t)
	any := pointer(azcore.ETagAny)
	stale := pointer(azcore.ETag(`W/"datetime'2001-01-01T00%3A00%3A00Z'"`))
	missing, mismatch, malformed := refusal{404, "ResourceNotFound"}, refusal{412, "UpdateConditionNotSatisfied"}, refusal{400, "InvalidInput"}
	conditional := func(there bool, tag string) refusal {
		switch {
		case tag == "malformed":
			return malformed
		case !there:
			return missing
		case tag == "stale":
			return mismatch
		}
		return refusal{}
	}
	unconditional := func(bool, string) refusal { return refusal{} }
	for _, w := range []struct {
		write
		refused func(there bool, tag string) refusal
	}{
		{write{"insert", insert, replaced}, func(there bool, _ string) refusal {
			if there {
				return refusal{409, "EntityAlreadyExists"}
			}
			return refusal{}
		}},
		{write{"merge", update(aztables.UpdateModeMerge), merged}, conditional},
		{write{"replace", update(aztables.UpdateModeReplace), replaced}, conditional},
		{write{"upsert by merge", upsert(aztables.UpdateModeMerge), merged}, unconditional},
		{write{"upsert by replace", upsert(aztables.UpdateModeReplace), replaced}, unconditional},
		{write{"delete", remove, nil}, conditional},
	} {
		for _, there := range []bool{true, false} {
			for _, tag := range []string{"none", "any", "current", "stale", "malformed"} {
				name := fmt.Sprintf("%s,there=%t,%s", w.name, there, tag)
				t.Run(name, func(t *testing.T) {
					current := stale
					if there {
						old := entity("p", name, property{"A", "", "1"}, property{"B", "", `"old"`})
						current = pointer(must(client.AddEntity(t.Context(), old, nil))(t).ETag)
					}
					tags := map[string]*azcore.ETag{"none": nil, "any": any, "current": current, "stale": stale, "malformed": pointer(azcore.ETag(`"x"`))}
					err := w.do(t, client, entity("p", name, property{"B", "", `"new"`}, property{"C", "", "3"}), tags[tag])
					refused := w.refused(there, tag)
					wantRefusal(t, err, refused)
					checkWritten(t, client, name, w.want, there, refused != refusal{})
				})
			}
		}
	}
}

// checkWritten reads the entity after a write and compares it.
func checkWritten(t *testing.T, client *aztables.Client, row string, written map[string]any, there, refused bool) {
	t.Helper()
	want := written
	switch {
	case refused && there:
		want = map[string]any{"A": 1.0, "B": "old"}
	case refused:
		want = nil
	case !there && written != nil:
		want = replaced // there was no A
	}
	resp, err := client.GetEntity(t.Context(), "p", row, nil)
	if want == nil {
		wantRefusal(t, err, refusal{404, "ResourceNotFound"})
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := custom(members(t, resp.Value)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRace checks that only one of several writers with the same ETag succeeds.
func TestRace(t *testing.T) {
	_, client := newTable(t)
	tag := must(client.AddEntity(t.Context(), entity("p", "r"), nil))(t).ETag
	const writers = 16
	outcomes := make(chan error, writers)
	for i := range writers {
		go func() {
			outcomes <- update(aztables.UpdateModeReplace)(t, client, entity("p", "r", property{"By", "", fmt.Sprint(i)}), &tag)
		}()
	}
	won := 0
	for range writers {
		if err := <-outcomes; err == nil {
			won++
		} else {
			wantRefusal(t, err, refusal{412, "UpdateConditionNotSatisfied"})
		}
	}
	if won != 1 {
		t.Errorf("%d writers succeeded, want 1", won)
	}
}

// TestCounter increments one number by its ETag from several writers: no increment is lost.
func TestCounter(t *testing.T) {
	_, client := newTable(t)
	must(client.AddEntity(t.Context(), entity("p", "r", property{"N", "", "0"}), nil))(t)
	const writers, each = 6, 20
	outcomes := make(chan error, writers)
	for range writers {
		go func() { outcomes <- countUp(t, client, each) }()
	}
	for range writers {
		if err := <-outcomes; err != nil {
			t.Error(err)
		}
	}
	if got := get(t, client, "p", "r")["N"]; got != float64(writers*each) {
		t.Errorf("got %v, want %d", got, writers*each)
	}
}

func countUp(t *testing.T, client *aztables.Client, n int) error {
	for n > 0 {
		resp, err := client.GetEntity(t.Context(), "p", "r", nil)
		if err != nil {
			return err
		}
		var e struct{ N int }
		if err := json.Unmarshal(resp.Value, &e); err != nil {
			return err
		}
		err = update(aztables.UpdateModeReplace)(t, client, entity("p", "r", property{"N", "", fmt.Sprint(e.N + 1)}), &resp.ETag)
		switch refusalOf(err) {
		case refusal{}:
			n--
		case refusal{412, "UpdateConditionNotSatisfied"}:
		default:
			return err
		}
	}
	return nil
}
