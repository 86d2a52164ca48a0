package predicate

import (
	"slices"
	"sync"

	"github.com/tablerock-db/tablerock/edm"
)

// Program is a compiled predicate. It is immutable and safe for concurrent use.
type Program struct {
	root   *Node
	joined *Node    // what is evaluated
	names  []string // distinct custom properties, in the order of first mention
	steps  []step   // of joined
	start  int32
	keys   bool // some Term compares PartitionKey or RowKey
	// columns is names, and Timestamp after them if some Term compares it.
	columns []string
}

// step is one comparison and the next step for each of its results, or the end of the
// run. The jumps alone implement not, and, or.
type step struct {
	term    *Term
	yes, no int32
}

// Results of a run, as the next step.
const (
	accept = -1
	reject = -2
)

// Compile makes a Program of n, which the caller must not change afterwards.
func Compile(n *Node) *Program {
	p := &Program{root: normal(n, false)}
	p.joined = joined(p.root)
	index := make(map[string]int)
	p.start = p.emit(p.joined, accept, reject, index)
	// Steps were emitted last first. Reverse them, so that a run goes forward in
	// memory.
	last := int32(len(p.steps) - 1)
	reversed := func(pc int32) int32 {
		if pc < 0 {
			return pc
		}
		return last - pc
	}
	for i, j := 0, len(p.steps)-1; i < j; i, j = i+1, j-1 {
		p.steps[i], p.steps[j] = p.steps[j], p.steps[i]
	}
	for i := range p.steps {
		p.steps[i].yes, p.steps[i].no = reversed(p.steps[i].yes), reversed(p.steps[i].no)
	}
	p.start = reversed(p.start)
	p.columns = p.names
	for i := range p.steps {
		if p.steps[i].term.source == sourceTimestamp {
			p.columns = append(slices.Clip(p.names), edm.TimestampName)
		}
	}
	return p
}

// emit appends the steps of n and returns the first one.
func (p *Program) emit(n *Node, yes, no int32, index map[string]int) int32 {
	switch n.Kind {
	case True:
		return yes
	case False:
		return no
	case And:
		for i := len(n.Kids) - 1; i >= 0; i-- {
			yes = p.emit(n.Kids[i], yes, no, index)
		}
		return yes
	case Or:
		for i := len(n.Kids) - 1; i >= 0; i-- {
			no = p.emit(n.Kids[i], yes, no, index)
		}
		return no
	}
	p.resolve(n.Term, index)
	if n.Negated {
		yes, no = no, yes
	}
	p.steps = append(p.steps, step{n.Term, yes, no})
	return int32(len(p.steps) - 1)
}

// resolve sets the source of t's property.
func (p *Program) resolve(t *Term, index map[string]int) {
	switch t.Name {
	case edm.PartitionKeyName:
		t.source, p.keys = sourcePartition, true
	case edm.RowKeyName:
		t.source, p.keys = sourceRow, true
	case edm.TimestampName:
		t.source = sourceTimestamp
	default:
		i, ok := index[t.Name]
		if !ok {
			i = len(p.names)
			index[t.Name] = i
			p.names = append(p.names, t.Name)
		}
		t.source = i
	}
	for _, replaced := range t.joined {
		replaced.source = t.source
	}
}

// Root returns the expression of p, which must not be changed. It is an And or Or over
// Compare nodes and nested Or or And nodes, or a single Compare, True or False.
func (p *Program) Root() *Node { return p.root }

// costBytes is how many bytes of a constant cost as much as a comparison.
const costBytes = 32

// Cost returns how much a Match costs at most, in comparisons with short constants.
func (p *Program) Cost() int {
	n := 0
	for i := range p.steps {
		t := p.steps[i].term
		for _, replaced := range t.joined {
			n += replaced.cost()
		}
		if len(t.joined) == 0 {
			n += t.cost()
		}
	}
	return n
}

func (t *Term) cost() int {
	if v := t.Value; v.Type() == edm.TypeString || v.Type() == edm.TypeBinary {
		return 1 + len(v.Bytes())/costBytes
	}
	return 1
}

// Names returns the custom properties that p compares. It must not be changed.
func (p *Program) Names() []string { return p.names }

// Columns returns Names, and after them Timestamp if p compares it. It returns nil if p
// compares a key. It must not be changed.
func (p *Program) Columns() []string {
	if p.keys {
		return nil
	}
	return p.columns
}

// Column returns the index in Columns of what t compares.
func (p *Program) Column(t *Term) int {
	if t.source == sourceTimestamp {
		return len(p.names)
	}
	return t.source
}

// Match reports whether row satisfies p. It looks up properties by name and does not
// allocate.
func (p *Program) Match(row edm.Row) bool {
	if !p.keys {
		return p.run(row, nil, nil)
	}
	k := keyPool.Get().(*keys)
	k.reset()
	ok := p.run(row, nil, k)
	keyPool.Put(k)
	return ok
}

// Binding is a Program bound to rows of one shape. It has its own memory for keys;
// only one goroutine at a time may use it.
type Binding struct {
	program *Program
	index   []int
	keys    keys
}

// Bind binds p to rows of one shape. lookup returns the index of the custom property
// called name, as for Row.At, or a negative number if the rows do not have it.
func (p *Program) Bind(lookup func(name string) int) *Binding {
	b := &Binding{program: p, index: make([]int, len(p.names))}
	b.rebind(lookup)
	return b
}

// rebind binds b to rows of another shape, as Program.Bind does.
func (b *Binding) rebind(lookup func(name string) int) {
	for i, name := range b.program.names {
		b.index[i] = lookup(name)
	}
}

// Match reports whether row, which must have the shape of b, satisfies the Program. It
// allocates only to grow its memory for keys.
func (b *Binding) Match(row edm.Row) bool {
	b.keys.reset()
	return b.program.run(row, b.index, &b.keys)
}

// run runs p on one row. If index is nil, properties are looked up by name. k may be
// nil if p compares no key.
func (p *Program) run(row edm.Row, index []int, k *keys) bool {
	pc := p.start
	for pc >= 0 {
		s := &p.steps[pc]
		if s.term.satisfied(row, index, k) {
			pc = s.yes
		} else {
			pc = s.no
		}
	}
	return pc == accept
}

// satisfied evaluates one comparison, with the parameters of run.
func (t *Term) satisfied(row edm.Row, index []int, k *keys) bool {
	switch t.source {
	case sourcePartition:
		return t.tests[edm.TypeString].Bytes(k.partitionOf(row))
	case sourceRow:
		return t.tests[edm.TypeString].Bytes(k.rowOf(row))
	case sourceTimestamp:
		return t.tests[edm.TypeDateTime].Int(int64(row.Timestamp()))
	}
	var v edm.Value
	if index == nil {
		v, _ = row.Lookup(t.Name)
	} else if i := index[t.source]; i >= 0 {
		_, v = row.At(i)
	}
	return t.tests[v.Type()].Value(v)
}

// keys caches the two keys of the current row.
type keys struct {
	partition, row       []byte
	hasPartition, hasRow bool
}

var keyPool = sync.Pool{New: func() any { return new(keys) }}

func (k *keys) reset() { k.hasPartition, k.hasRow = false, false }

func (k *keys) partitionOf(r edm.Row) []byte {
	if !k.hasPartition {
		k.partition, k.hasPartition = r.AppendPartition(k.partition[:0]), true
	}
	return k.partition
}

func (k *keys) rowOf(r edm.Row) []byte {
	if !k.hasRow {
		k.row, k.hasRow = r.AppendRow(k.row[:0]), true
	}
	return k.row
}
