// Package catalog is the set of an account's tables, and its stored form.
package catalog

import (
	"cmp"
	"iter"
	"slices"

	"github.com/google/btree"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/store"
)

// The catalog is stored as entities of table 0, so that creating and dropping a
// table are ordinary records of the log. Its keys and property names are part
// of the file format.
const (
	// TableID is the id of the catalog's own table.
	TableID = 0
	// FirstTableID is the least id of an account's table. An id is never used
	// again.
	FirstTableID = 16
	// MaxTableID is the greatest id that a table is given.
	MaxTableID = 1<<32 - 3

	partitionTables  = "table"   // partition: one entity per table, RowKey = folded name
	partitionAccount = "account" // partition: one entity, the account's metadata
	partitionNext    = "next"    // partition: one entity, the next table id

	propID      = "Id"
	propName    = "Name"
	propCreated = "Created"
	propMeta    = "Meta"
)

// Table is a table of a Catalog. It is immutable.
type Table struct {
	ID      uint32
	Name    string // as it was created
	Created edm.Ticks
	Meta    []byte // nil for none
	hash    uint64 // of Name, once the table is in a Catalog
}

// Catalog is the set of tables and the account's metadata at one instant. It and
// everything it returns is immutable. A change makes another Catalog, which shares
// all but O(log n) of the memory. Any number of goroutines may read a Catalog. Only
// one at a time may change it.
type Catalog struct {
	names   *names
	sorted  *btree.BTreeG[*Table] // by folded name
	live    *btree.BTreeG[uint32]
	next    uint32 // the id of the next table
	account []byte
	stored  bool // account has an entity
}

// treeDegree makes nodes of at most 31 items. A change copies a node of each level.
const treeDegree = 16

// New returns the catalog of an account without tables.
func New() *Catalog {
	return &Catalog{
		sorted: btree.NewG(treeDegree, func(a, b *Table) bool { return compareFolded(a.Name, b.Name) < 0 }),
		live:   btree.NewOrderedG[uint32](treeDegree),
		next:   FirstTableID,
	}
}

// compareFolded compares names as strings.Compare compares the results of
// edm.FoldTableName, but it allocates nothing.
func compareFolded(a, b string) int {
	for i := range min(len(a), len(b)) {
		if x, y := a[i], b[i]; x != y {
			if c := cmp.Compare(fold(x), fold(y)); c != 0 {
				return c
			}
		}
	}
	return cmp.Compare(len(a), len(b))
}

func fold(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// Lookup returns a table by its name in any case, or nil. It allocates nothing.
func (c *Catalog) Lookup(name string) *Table {
	if t := c.names.exact(name); t != nil {
		return t
	}
	return c.names.find(name, hashName(name))
}

func (c *Catalog) clone() *Catalog {
	return &Catalog{names: c.names, sorted: c.sorted.Clone(), live: c.live.Clone(), next: c.next, account: c.account, stored: c.stored}
}

// with returns the catalog with t added, in place of a table of the same name.
func (c *Catalog) with(t *Table) *Catalog {
	n := c.clone()
	n.add(t)
	return n
}

// without returns the catalog with t removed.
func (c *Catalog) without(t *Table) *Catalog {
	n := c.clone()
	n.names = n.names.without(t, 0)
	n.sorted.Delete(t)
	n.live.Delete(t.ID)
	return n
}

// withAccount returns the catalog with other metadata of the account.
func (c *Catalog) withAccount(meta []byte) *Catalog {
	n := *c
	n.account, n.stored = meta, true
	return &n
}

// List returns at most limit tables, 0 for all, beginning with the folded name from.
func (c *Catalog) List(from string, limit int) []store.TableInfo {
	n := c.Len()
	if limit > 0 {
		n = min(n, limit)
	}
	infos := make([]store.TableInfo, 0, n)
	c.sorted.AscendGreaterOrEqual(&Table{Name: from}, func(t *Table) bool {
		infos = append(infos, store.TableInfo{Name: t.Name, Created: t.Created})
		return limit <= 0 || len(infos) < limit
	})
	return infos
}

// Entity returns the entity that stores t.
func (t *Table) Entity() edm.Entity {
	props := edm.Properties{
		{Name: propID, Value: edm.Int64(int64(t.ID))},
		{Name: propName, Value: edm.String(t.Name)},
		{Name: propCreated, Value: edm.DateTime(t.Created)},
	}
	if len(t.Meta) > 0 {
		props = append(props, edm.Property{Name: propMeta, Value: edm.Binary(t.Meta)})
	}
	return edm.Entity{Key: t.rowKey(), Properties: props}
}

// Load returns the catalog that the rows of its table store, or the error of rows. It uses a
// row only until it asks for the next one.
func Load(rows iter.Seq2[edm.Row, error]) (*Catalog, error) {
	c := New()
	for row, err := range rows {
		if err == nil {
			err = c.load(row)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *Catalog) load(row edm.Row) error {
	switch key := row.Key(); key.Partition {
	case partitionTables:
		t, err := tableOf(key.Row, row)
		if err != nil {
			return err
		}
		if c.Live(t.ID) {
			return corrupt.Newf(source, 0, "table %q has the id %d of another", t.Name, t.ID)
		}
		c.add(t)
	case partitionAccount:
		meta, _ := row.Lookup(propMeta)
		c.account, c.stored = slices.Clone(meta.Bytes()), true
	case partitionNext:
		next, _ := row.Lookup(propID)
		id, _ := next.Int64()
		if next.Type() != edm.TypeInt64 || id < FirstTableID || id > MaxTableID+1 {
			return corrupt.Newf(source, 0, "next table id is %v", next)
		}
		c.next = max(c.next, uint32(id))
	default:
		return corrupt.Newf(source, 0, "unknown row %q", key)
	}
	return nil
}

// source is used in errors instead of the name of a file, because the checksums of
// the rows are right.
const source = "catalog"

// add adds t to c, which no other Catalog shares.
func (c *Catalog) add(t *Table) {
	t.hash = hashName(t.Name)
	c.names = c.names.with(t, 0)
	c.sorted.ReplaceOrInsert(t)
	c.live.ReplaceOrInsert(t.ID)
	c.next = max(c.next, t.ID+1)
}

func tableOf(folded string, row edm.Row) (*Table, error) {
	id, _ := row.Lookup(propID)
	name, _ := row.Lookup(propName)
	created, _ := row.Lookup(propCreated)
	meta, _ := row.Lookup(propMeta)
	n, _ := id.Int64()
	text, _ := name.Text()
	when, ok := created.DateTime()
	ok = ok && id.Type() == edm.TypeInt64 && n >= FirstTableID && n <= MaxTableID
	if !ok || edm.FoldTableName(text) != folded || edm.CheckTableName(text) != nil {
		return nil, corrupt.Newf(source, 0, "row of table %q has id %v and name %v", folded, id, name)
	}
	return &Table{
		ID:      uint32(n),
		Name:    text,
		Created: when,
		Meta:    slices.Clone(meta.Bytes()),
	}, nil
}

// rowKey returns the key of the entity that stores t.
func (t *Table) rowKey() edm.Key {
	return edm.Key{Partition: partitionTables, Row: edm.FoldTableName(t.Name)}
}

// NextEntity returns the entity that stores next, the id of the next table.
func NextEntity(next uint32) edm.Entity {
	return edm.Entity{
		Key:        edm.Key{Partition: partitionNext},
		Properties: edm.Properties{{Name: propID, Value: edm.Int64(int64(next))}},
	}
}

// accountEntity returns the entity that stores the account's metadata.
func accountEntity(meta []byte) edm.Entity {
	return edm.Entity{
		Key:        edm.Key{Partition: partitionAccount},
		Properties: edm.Properties{{Name: propMeta, Value: edm.Binary(meta)}},
	}
}

// Len returns the number of tables.
func (c *Catalog) Len() int { return c.sorted.Len() }

// Entities returns the number of entities that store c.
func (c *Catalog) Entities() int {
	n := c.Len() + 1 // NextEntity
	if c.stored {
		n++
	}
	return n
}

// Next returns the id of the next table; above MaxTableID there is none.
func (c *Catalog) Next() uint32 { return c.next }

// Account returns the account's metadata, nil for none.
func (c *Catalog) Account() []byte { return c.account }

// Live reports whether a table has the id.
func (c *Catalog) Live(id uint32) bool { return c.live.Has(id) }
