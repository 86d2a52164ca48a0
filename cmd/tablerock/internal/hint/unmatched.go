package hint

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/filter"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// unmatchedTime limits the time of Unmatched.
const unmatchedTime = 2 * time.Second

// types is a set of Edm types, one bit for each.
type types uint32

func typesOf(list ...edm.Type) (t types) {
	for _, one := range list {
		t |= 1 << one
	}
	return t
}

// comparable returns the types of values that a filter can find equal to those of type t.
func comparable(t edm.Type) types {
	if numbers := typesOf(edm.TypeInt32, edm.TypeInt64, edm.TypeDouble); numbers&typesOf(t) != 0 {
		return numbers
	}
	return typesOf(t)
}

func (t types) String() string {
	var names []string
	for one := edm.TypeString; one <= edm.TypeGuid; one++ {
		if t&typesOf(one) != 0 {
			names = append(names, one.String())
		}
	}
	return strings.Join(names, " or ")
}

// comparison is a property that a filter compares with a constant, or that is selected: then
// constant is 0.
type comparison struct {
	name     string
	constant edm.Type
}

// comparisonsOf appends the comparisons of custom properties in n.
func comparisonsOf(list []comparison, n *predicate.Node) []comparison {
	if n.Kind == predicate.Compare && !isSystem(n.Term.Name) {
		c := comparison{n.Term.Name, n.Term.Value.Type()}
		if !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	for _, k := range n.Kids {
		list = comparisonsOf(list, k)
	}
	return list
}

func isSystem(name string) bool {
	return name == edm.PartitionKeyName || name == edm.RowKeyName || name == edm.TimestampName
}

// Unmatched says why a filter can have matched nothing, or why selected properties are
// missing: no entity of the table has a property, or none has it with a type that the filter
// compares. It reads at most the given number of entities, for 2 s at most, and returns "" if
// it has nothing to say.
func Unmatched(ctx context.Context, src transfer.Querier, table string, e *filter.Expr, selected []string, limit int) string {
	var wanted []comparison
	if p := predicate.Residual(e); p != nil {
		wanted = comparisonsOf(wanted, p.Root())
	}
	for _, name := range selected {
		if !isSystem(name) {
			wanted = append(wanted, comparison{name: name})
		}
	}
	if len(wanted) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, unmatchedTime)
	defer cancel()
	var found properties
	all, err := found.read(ctx, src, table, limit)
	if err != nil && found.rows == 0 {
		return "" // the command itself has reported errors that last
	}
	if found.rows == 0 {
		return fmt.Sprintf("table %s has no entities", table)
	}
	var texts []string
	for _, c := range wanted {
		if text := found.explain(c, table, all && err == nil); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// properties are those of the entities that were read.
type properties struct {
	rows  int64
	types map[string]types // by name
}

// read reads at most limit entities and reports whether these were all.
func (p *properties) read(ctx context.Context, src transfer.Querier, table string, limit int) (all bool, err error) {
	p.types = map[string]types{}
	c := src.Query(ctx, table, store.Query{Limit: limit})
	defer c.Close()
	for c.Next() {
		row := c.Row()
		p.rows++
		for i := range row.Len() {
			name, v := row.At(i)
			p.types[name] |= typesOf(v.Type())
		}
	}
	return c.Resume() == nil, c.Err()
}

// explain says what is wrong with a comparison, and nothing if some entity can satisfy it.
func (p *properties) explain(c comparison, table string, all bool) string {
	there, ok := p.types[c.name]
	switch {
	case !ok:
		var names []string
		for name := range p.types {
			names = append(names, name)
		}
		slices.Sort(names)
		who := "no entity of table " + table
		if !all {
			who = fmt.Sprintf("none of the first %d entities of table %s", p.rows, table)
		}
		return fmt.Sprintf("%s has the property %s%s", who, c.name, Near(c.name, names))
	case c.constant != 0 && there&comparable(c.constant) == 0:
		of := "all entities"
		if !all {
			of = fmt.Sprintf("the first %d entities", p.rows)
		}
		return fmt.Sprintf("%s is %v in %s of table %s, and the filter compares it with %v", c.name, there, of, table, c.constant)
	}
	return ""
}
