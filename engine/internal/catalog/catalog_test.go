package catalog

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/store"
)

func table(id uint32, name string) *Table {
	return &Table{ID: id, Name: name, Created: edm.Ticks(id) * 10}
}

func load(entities ...edm.Entity) (*Catalog, error) {
	return Load(func(yield func(edm.Row, error) bool) {
		for i := range entities {
			if !yield(entities[i].View(), nil) {
				return
			}
		}
	})
}

// TestLoad builds a catalog by changes, and again from the rows that these changes
// store.
func TestLoad(t *testing.T) {
	c := New()
	rows := map[edm.Key]edm.Entity{}
	put := func(e edm.Entity) { rows[e.Key] = e }
	for _, name := range []string{"Beta", "alpha", "GAMMA", "delta"} {
		tab := table(c.Next(), name)
		put(NextEntity(tab.ID + 1))
		put(tab.Entity())
		c = c.with(tab)
	}
	gone := c.Lookup("DELTA") // it has the greatest id
	c = c.without(gone)
	delete(rows, gone.rowKey())
	withMeta := *c.Lookup("beta")
	withMeta.Meta = []byte("meta")
	c = c.with(&withMeta)
	put(withMeta.Entity())
	c = c.withAccount([]byte("account"))
	put(accountEntity([]byte("account")))

	var list []edm.Entity
	for _, e := range rows {
		list = append(list, e)
	}
	got, err := load(list...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{c, got} {
		var names []string
		for _, info := range c.List("", 0) {
			names = append(names, info.Name)
		}
		if !slices.Equal(names, []string{"alpha", "Beta", "GAMMA"}) || c.Len() != 3 {
			t.Errorf("tables are %q", names)
		}
		if c.Next() != FirstTableID+4 {
			t.Errorf("next id is %d: the id of a dropped table would be used again", c.Next())
		}
		if b := c.Lookup("bETA"); b == nil || b.ID != FirstTableID || b.Name != "Beta" || string(b.Meta) != "meta" || b.Created != edm.Ticks(b.ID)*10 {
			t.Errorf("Lookup(bETA) = %+v", b)
		}
		if string(c.Account()) != "account" || c.Lookup("delta") != nil || c.Live(gone.ID) || !c.Live(FirstTableID) {
			t.Errorf("account %q, delta %v, live %v", c.Account(), c.Lookup("delta"), c.Live(gone.ID))
		}
	}
}

// TestCatalogsAreImmutable changes a catalog and checks the one before.
func TestCatalogsAreImmutable(t *testing.T) {
	a := New().with(table(16, "Aaa"))
	b := a.with(table(17, "Bbb"))
	c := b.without(b.Lookup("aaa"))
	for _, x := range []struct {
		name string
		c    *Catalog
		want []string
	}{{"a", a, []string{"Aaa"}}, {"b", b, []string{"Aaa", "Bbb"}}, {"c", c, []string{"Bbb"}}} {
		var names []string
		for _, info := range x.c.List("", 0) {
			names = append(names, info.Name)
		}
		if !slices.Equal(names, x.want) {
			t.Errorf("%s lists %q, want %q", x.name, names, x.want)
		}
	}
	ch, err := c.Drop("bbb")
	if err != nil || ch.Dropped != 17 {
		t.Errorf("Drop drops table %d (%v), want 17", ch.Dropped, err)
	}
	if a.Lookup("Bbb") != nil || c.Lookup("Aaa") != nil || b.Lookup("AAA") == nil {
		t.Error("a change of one catalog changes another")
	}
}

func TestDrops(t *testing.T) {
	var drops Drops
	drops.Add(0, 6, 0)
	drops.Add(16, 7, 0)
	drops.Add(18, 5, 0)
	if drops.Seq(16) != 7 || drops.Seq(17) != 0 || drops.Seq(18) != 5 || drops.Last() != 7 || drops.Len() != 2 {
		t.Errorf("tables 16 to 18 were dropped at %d, %d and %d, want 7, 0 and 5; the last of %d at %d",
			drops.Seq(16), drops.Seq(17), drops.Seq(18), drops.Len(), drops.Last())
	}
	const last = 1000 + 3*minDrops
	for id := uint32(1000); id <= last; id++ {
		drops.Add(id, uint64(id), uint64(id)-2) // the last two are not final
	}
	if drops.Len() > minDrops || drops.Seq(16) != 0 || drops.Seq(last-1) != last-1 || drops.Seq(last) != last {
		t.Errorf("%d final drops are kept, table 16 at %d, the last ones at %d and %d", drops.Len(), drops.Seq(16), drops.Seq(last-1), drops.Seq(last))
	}
	for id := uint32(last + 1); id <= last+3*minDrops; id++ {
		drops.Add(id, uint64(id), last)
		if drops.Seq(last+1) != last+1 {
			t.Fatalf("a drop that is not final is forgotten after %d", id)
		}
	}
}

// TestPending asks what an answer from a change at 5 waits for.
func TestPending(t *testing.T) {
	logged := Logged{Catalog: New(), Seq: 5}
	for published, want := range map[uint64]uint64{0: 5, 4: 5, 5: 0, 6: 0} {
		if got := logged.Pending(published); got != want {
			t.Errorf("with %d published: %d, want %d", published, got, want)
		}
	}
}

// TestLastID creates the table with the greatest id, and one more.
func TestLastID(t *testing.T) {
	c, err := load(NextEntity(MaxTableID))
	if err != nil {
		t.Fatal(err)
	}
	ch, err := c.Create("Last", 1)
	if err != nil || ch.After.Lookup("last").ID != MaxTableID {
		t.Fatalf("table %+v, error %v", ch.After.Lookup("last"), err)
	}
	again, err := load(ch.Put...)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Catalog{ch.After, again} {
		if _, err := c.Create("Another", 1); !errors.Is(err, store.ErrReadOnly) {
			t.Errorf("another table: %v, want ErrReadOnly", err)
		}
	}
}

// TestList pages through tables by folded names.
func TestList(t *testing.T) {
	for b := range byte(128) {
		if got, want := fold(b), edm.FoldTableName(string(rune(b))); string(rune(got)) != want {
			t.Errorf("fold(%q) = %q, want %q", b, got, want)
		}
	}
	c := New()
	for i, name := range []string{"ccc", "AAA", "bbb", "Ddd"} {
		c = c.with(table(uint32(16+i), name))
	}
	for _, q := range []struct {
		from  string
		limit int
		want  []string
	}{
		{"", 0, []string{"AAA", "bbb", "ccc", "Ddd"}},
		{"", 2, []string{"AAA", "bbb"}},
		{"BBB", 0, []string{"bbb", "ccc", "Ddd"}},
		{"bbba", 1, []string{"ccc"}},
		{"zzz", 0, nil},
	} {
		var names []string
		for _, info := range c.List(q.from, q.limit) {
			names = append(names, info.Name)
		}
		if !slices.Equal(names, q.want) {
			t.Errorf("List(%q, %d) = %q, want %q", q.from, q.limit, names, q.want)
		}
	}
}

// TestLoadRefuses loads rows that no catalog stores.
func TestLoadRefuses(t *testing.T) {
	good := table(16, "Good")
	change := func(name string, v edm.Value) edm.Entity {
		e := good.Entity()
		for i := range e.Properties {
			if e.Properties[i].Name == name {
				e.Properties[i].Value = v
			}
		}
		return e
	}
	longest := strings.Repeat("n", maxName)
	for name, e := range map[string]edm.Entity{
		"invalid name":     table(16, "1").Entity(),
		"name too long":    table(16, longest+"n").Entity(),
		"next too large":   NextEntity(MaxTableID + 2),
		"next of Int32":    {Key: NextEntity(17).Key, Properties: edm.Properties{{Name: propID, Value: edm.Int32(17)}}},
		"reserved id":      change(propID, edm.Int64(FirstTableID-1)),
		"id too large":     change(propID, edm.Int64(1<<32-1)),
		"id of other type": change(propID, edm.Int32(16)),
		"other name":       change(propName, edm.String("Other")),
		"no name":          change(propName, edm.Int32(1)),
		"no time":          change(propCreated, edm.Int64(1)),
		"next too small":   NextEntity(FirstTableID - 1),
		"next missing":     {Key: edm.Key{Partition: partitionNext}},
		"unknown row":      {Key: edm.Key{Partition: "other"}},
	} {
		if _, err := load(e); !errors.Is(err, corrupt.ErrCorrupt) {
			t.Errorf("%s: %v, want damage", name, err)
		}
	}
	if _, err := load(good.Entity(), table(16, "Other").Entity()); !errors.Is(err, corrupt.ErrCorrupt) {
		t.Errorf("two tables with one id: %v, want damage", err)
	}
	unreadable := errors.New("unreadable")
	if _, err := Load(func(yield func(edm.Row, error) bool) { yield(nil, unreadable) }); err != unreadable {
		t.Errorf("unreadable rows: %v", err)
	}
	c, err := load(good.Entity(), table(MaxTableID, longest).Entity(), NextEntity(FirstTableID))
	if err != nil || c.Lookup("good") == nil || c.Lookup(longest) == nil || c.Lookup(longest+"n") != nil || c.Next() != MaxTableID+1 {
		t.Errorf("good rows: %v", err)
	}
}
