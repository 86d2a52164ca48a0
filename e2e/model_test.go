package e2e

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

var (
	seed  = flag.Uint64("seed", 1, "seed of TestModel")
	steps = flag.Int("steps", 1500, "steps of TestModel")
)

// model is the expected content of a table: entities by row of one partition, and the last
// ETag of each.
type model struct {
	entities map[string]map[string]any
	tags     map[string]azcore.ETag
}

var (
	modelKinds = []aztables.TransactionType{opAdd, opDelete, opInsertMerge, opInsertReplace, opUpdateMerge, opUpdateReplace}
	staleTag   = azcore.ETag(`W/"datetime'2001-01-01T00%3A00%3A00Z'"`)
)

// change is a write.
type change struct {
	kind       aztables.TransactionType
	row        string
	properties map[string]any
	tag        *azcore.ETag
}

func (c *change) text() []byte {
	var list []property
	for _, name := range slices.Sorted(maps.Keys(c.properties)) {
		switch v := c.properties[name].(type) {
		case string:
			list = append(list, property{name, "", quote(v)})
		default:
			list = append(list, property{name, "", fmt.Sprint(v)})
		}
	}
	return entity("p", c.row, list...)
}

// outcome returns the expected result of a write without applying it.
func (m *model) outcome(c *change) refusal {
	_, there := m.entities[c.row]
	switch c.kind {
	case opAdd:
		if there {
			return refusal{409, "EntityAlreadyExists"}
		}
		return refusal{}
	case opInsertMerge, opInsertReplace:
		return refusal{}
	}
	switch {
	case !there:
		return refusal{404, "ResourceNotFound"}
	case c.tag != nil && *c.tag != azcore.ETagAny && *c.tag != m.tags[c.row]:
		return refusal{412, "UpdateConditionNotSatisfied"}
	}
	return refusal{}
}

// apply applies a successful write.
func (m *model) apply(c *change) {
	switch c.kind {
	case opDelete:
		delete(m.entities, c.row)
		return
	case opInsertMerge, opUpdateMerge:
		if old := m.entities[c.row]; old != nil {
			merged := maps.Clone(old)
			maps.Copy(merged, c.properties)
			m.entities[c.row] = merged
			return
		}
	}
	m.entities[c.row] = maps.Clone(c.properties)
}

// randomChange returns a random write to one of a few rows.
func (m *model) randomChange(r *rand.Rand) *change {
	c := &change{kind: modelKinds[r.IntN(len(modelKinds))], row: fmt.Sprintf("r%02d", r.IntN(30)), properties: map[string]any{}}
	for _, name := range []string{"A", "B", "C", "a"} {
		switch r.IntN(4) {
		case 0:
			c.properties[name] = float64(r.IntN(5))
		case 1:
			c.properties[name] = strings.Repeat("x", r.IntN(3))
		case 2:
			c.properties[name] = r.IntN(2) == 0
		}
	}
	switch c.kind {
	case opDelete, opUpdateMerge, opUpdateReplace:
		any, current := azcore.ETagAny, m.tags[c.row]
		c.tag = []*azcore.ETag{&any, &current, &staleTag}[r.IntN(3)]
		if *c.tag == "" {
			c.tag = &any
		}
	}
	return c
}

// TestModel runs random writes, transactions and queries and compares each result with the
// model.
func TestModel(t *testing.T) {
	_, client := newTable(t)
	r := rand.New(rand.NewPCG(*seed, 0))
	m := &model{entities: map[string]map[string]any{}, tags: map[string]azcore.ETag{}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("repeat with: go test -run TestModel -args -seed %d -steps %d", *seed, *steps)
		}
	})
	for step := 0; step < *steps && !t.Failed(); step++ {
		switch r.IntN(10) {
		case 0, 1:
			m.transaction(t, client, r)
		case 2:
			m.query(t, client, r)
		default:
			m.single(t, client, m.randomChange(r))
		}
	}
}

func (m *model) single(t *testing.T, client *aztables.Client, c *change) {
	t.Helper()
	do := map[aztables.TransactionType]func(*testing.T, *aztables.Client, []byte, *azcore.ETag) error{
		opAdd: insert, opDelete: remove, opInsertMerge: upsert(aztables.UpdateModeMerge), opInsertReplace: upsert(aztables.UpdateModeReplace),
		opUpdateMerge: update(aztables.UpdateModeMerge), opUpdateReplace: update(aztables.UpdateModeReplace),
	}[c.kind]
	want := m.outcome(c)
	wantRefusal(t, do(t, client, c.text(), c.tag), want)
	if want == (refusal{}) {
		m.apply(c)
	}
	m.check(t, client, c.row)
}

// check reads a row, compares it and stores its ETag.
func (m *model) check(t *testing.T, client *aztables.Client, row string) {
	t.Helper()
	resp, err := client.GetEntity(t.Context(), "p", row, nil)
	want, there := m.entities[row]
	if !there {
		wantRefusal(t, err, refusal{404, "ResourceNotFound"})
		delete(m.tags, row)
		return
	}
	if err != nil {
		t.Fatalf("%s: %v", row, err)
	}
	if got := custom(members(t, resp.Value)); !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", row, got, want)
	}
	m.tags[row] = resp.ETag
}

// transaction applies several writes to different rows in one transaction.
func (m *model) transaction(t *testing.T, client *aztables.Client, r *rand.Rand) {
	t.Helper()
	var changes []*change
	var actions []aztables.TransactionAction
	rows := map[string]bool{}
	for range 1 + r.IntN(6) {
		c := m.randomChange(r)
		if rows[c.row] {
			continue
		}
		rows[c.row] = true
		changes = append(changes, c)
		actions = append(actions, aztables.TransactionAction{ActionType: c.kind, Entity: c.text(), IfMatch: c.tag})
	}
	failing := slices.IndexFunc(changes, func(c *change) bool { return m.outcome(c) != refusal{} })
	_, err := client.SubmitTransaction(t.Context(), actions, nil)
	if failing >= 0 {
		want := m.outcome(changes[failing])
		prefix := fmt.Sprintf("%d:The", failing)
		if len(changes) == 1 {
			prefix = "The"
		}
		checkTransactionError(t, err, want.status, want.code, prefix)
	} else {
		wantRefusal(t, err, refusal{})
		for _, c := range changes {
			m.apply(c)
		}
	}
	for _, c := range changes {
		m.check(t, client, c.row)
	}
}

// query compares the rows of a filter, in pages of a random size.
func (m *model) query(t *testing.T, client *aztables.Client, r *rand.Rand) {
	t.Helper()
	name, n := []string{"A", "B", "C", "a"}[r.IntN(4)], float64(r.IntN(5))
	from := fmt.Sprintf("r%02d", r.IntN(30))
	filter := fmt.Sprintf("(%s ge %g or %s eq 'x' or %s eq true) and RowKey ge '%s'", name, n, name, name, from)
	want := []string{}
	for row, e := range m.entities {
		v := e[name]
		number, isNumber := v.(float64)
		if row >= from && (isNumber && number >= n || v == "x" || v == true) {
			want = append(want, row)
		}
	}
	slices.Sort(want)
	got, err := queryRows(t.Context(), client, &aztables.ListEntitiesOptions{Filter: &filter, Top: pointer(int32(1 + r.IntN(10)))})
	if err != nil {
		t.Fatalf("%s: %v", filter, err)
	}
	wantStrings(t, filter, got, want)
}
