package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/store"
)

// The catalog is stored as entities of table 0, so that creating and dropping a
// table are ordinary records of the log. Its keys and property names are part
// of the file format.
const (
	catalogTable = 0
	firstTableID = 16

	catalogTables  = "table"   // partition: one entity per table, RowKey = folded name
	catalogAccount = "account" // partition: one entity, the account's metadata
	catalogNext    = "next"    // partition: one entity, the next table id

	catalogID      = "Id"
	catalogName    = "Name"
	catalogCreated = "Created"
	catalogMeta    = "Meta"
)

// tableEntry is one table as of one change of the catalog. It is immutable.
type tableEntry struct {
	id      uint32
	name    string // as it was created
	folded  string
	created edm.Ticks
	meta    []byte
}

// catalog is the set of tables as of one moment. It is immutable; the current
// one stands behind DB.catalog.
type catalog struct {
	byName  map[string]*tableEntry // by the name as created and by the folded name
	sorted  []*tableEntry          // by folded name
	live    map[uint32]struct{}
	next    uint32 // the id of the next table
	account []byte
}

func newCatalog() *catalog {
	return &catalog{byName: map[string]*tableEntry{}, live: map[uint32]struct{}{}, next: firstTableID}
}

// lookup finds a table by its name in any spelling. The spelling of creation
// costs no allocation.
func (c *catalog) lookup(name string) *tableEntry {
	if t, ok := c.byName[name]; ok {
		return t
	}
	return c.byName[edm.FoldTableName(name)]
}

func (c *catalog) clone() *catalog {
	n := &catalog{
		byName:  make(map[string]*tableEntry, len(c.byName)+2),
		sorted:  slices.Clone(c.sorted),
		live:    make(map[uint32]struct{}, len(c.live)+1),
		next:    c.next,
		account: c.account,
	}
	for k, v := range c.byName {
		n.byName[k] = v
	}
	for k := range c.live {
		n.live[k] = struct{}{}
	}
	return n
}

// with returns the catalog with t added, or put in the place of the table of
// that name.
func (c *catalog) with(t *tableEntry) *catalog {
	n := c.clone()
	i, found := n.find(t.folded)
	if found {
		n.sorted[i] = t
	} else {
		n.sorted = slices.Insert(n.sorted, i, t)
	}
	n.byName[t.folded] = t
	n.byName[t.name] = t
	n.live[t.id] = struct{}{}
	n.next = max(n.next, t.id+1)
	return n
}

// without returns the catalog with t removed.
func (c *catalog) without(t *tableEntry) *catalog {
	n := c.clone()
	if i, found := n.find(t.folded); found {
		n.sorted = slices.Delete(n.sorted, i, i+1)
	}
	delete(n.byName, t.folded)
	delete(n.byName, t.name)
	delete(n.live, t.id)
	return n
}

func (c *catalog) withAccount(meta []byte) *catalog {
	n := c.clone()
	n.account = meta
	return n
}

func (c *catalog) find(folded string) (int, bool) {
	return slices.BinarySearchFunc(c.sorted, folded, func(t *tableEntry, name string) int {
		return strings.Compare(t.folded, name)
	})
}

// list returns at most limit tables from the folded name from on.
func (c *catalog) list(from string, limit int) []store.TableInfo {
	i, _ := c.find(edm.FoldTableName(from))
	tables := c.sorted[i:]
	if limit > 0 && len(tables) > limit {
		tables = tables[:limit]
	}
	infos := make([]store.TableInfo, len(tables))
	for i, t := range tables {
		infos[i] = store.TableInfo{Name: t.name, Created: t.created}
	}
	return infos
}

// entity returns the row that stores t.
func (t *tableEntry) entity() edm.Entity {
	props := edm.Properties{
		{Name: catalogID, Value: edm.Int64(int64(t.id))},
		{Name: catalogName, Value: edm.String(t.name)},
		{Name: catalogCreated, Value: edm.DateTime(t.created)},
	}
	if len(t.meta) > 0 {
		props = append(props, edm.Property{Name: catalogMeta, Value: edm.Binary(t.meta)})
	}
	return edm.Entity{Key: edm.Key{Partition: catalogTables, Row: t.folded}, Properties: props}
}

// applyRow returns the catalog with one stored row of table 0 added.
func (c *catalog) applyRow(row edm.Row) (*catalog, error) {
	key := row.Key()
	switch key.Partition {
	case catalogTables:
		t, err := tableOf(key.Row, row)
		if err != nil {
			return nil, err
		}
		return c.with(t), nil
	case catalogAccount:
		meta, _ := row.Lookup(catalogMeta)
		return c.withAccount(slices.Clone(meta.Bytes())), nil
	case catalogNext:
		next, _ := row.Lookup(catalogID)
		if next.Type() != edm.TypeInt64 || next.Int64() < firstTableID || next.Int64() > 1<<32-2 {
			return nil, corrupt.Newf("catalog", 0, "next table id is %v", next)
		}
		n := c.clone()
		n.next = max(n.next, uint32(next.Int64()))
		return n, nil
	}
	return nil, corrupt.Newf("catalog", 0, "unknown row %q", key)
}

func tableOf(folded string, row edm.Row) (*tableEntry, error) {
	id, _ := row.Lookup(catalogID)
	name, _ := row.Lookup(catalogName)
	created, _ := row.Lookup(catalogCreated)
	meta, _ := row.Lookup(catalogMeta)
	ok := id.Type() == edm.TypeInt64 && id.Int64() >= firstTableID && id.Int64() < 1<<32-1 &&
		name.Type() == edm.TypeString && created.Type() == edm.TypeDateTime
	if !ok || edm.FoldTableName(name.Text()) != folded {
		return nil, corrupt.Newf("catalog", 0, "row of table %q has id %v and name %v", folded, id, name)
	}
	return &tableEntry{
		id:      uint32(id.Int64()),
		name:    name.Text(),
		folded:  folded,
		created: created.DateTime(),
		meta:    slices.Clone(meta.Bytes()),
	}, nil
}

// catalogKeys returns the user keys of the catalog's three kinds of rows.
func catalogKey(partition, row string) []byte {
	return codec.AppendKey(nil, catalogTable, partition, row)
}

// nextIDEntity returns the row that keeps table ids from being used twice.
func nextIDEntity(next uint32) edm.Entity {
	return edm.Entity{
		Key:        edm.Key{Partition: catalogNext},
		Properties: edm.Properties{{Name: catalogID, Value: edm.Int64(int64(next))}},
	}
}

func accountEntity(meta []byte) edm.Entity {
	return edm.Entity{
		Key:        edm.Key{Partition: catalogAccount},
		Properties: edm.Properties{{Name: catalogMeta, Value: edm.Binary(meta)}},
	}
}

func checkMeta(name string, meta []byte) error {
	if len(meta) > store.MaxMetaBytes {
		return &edm.Error{Rule: edm.RuleMetaSize, Name: name, Limit: store.MaxMetaBytes, Got: fmt.Sprintf("%d bytes", len(meta))}
	}
	return nil
}
