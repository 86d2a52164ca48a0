package predicate

import (
	"sync"

	"github.com/tablerock-db/tablerock/edm"
)

// Program is a predicate ready to run. It is immutable and may be shared by any
// number of goroutines.
type Program struct {
	root  *Node
	names []string // distinct custom properties, in the order of first mention
	steps []step
	start int32
	keys  bool // some Term is about PartitionKey or RowKey
}

// step is one comparison and where its results lead: to another step, or to an
// end. Not, and and or are in these jumps alone.
type step struct {
	term    *Term
	yes, no int32
}

// Ends of a run.
const (
	accept = -1
	reject = -2
)

// Compile makes a Program of n, which belongs to the Program from then on.
func Compile(n *Node) *Program {
	p := &Program{root: normal(n, false)}
	slots := make(map[string]int)
	p.start = p.emit(p.root, accept, reject, slots)
	// Steps were emitted last first. Turning them around makes a run go forward
	// in memory.
	last := int32(len(p.steps) - 1)
	turn := func(pc int32) int32 {
		if pc < 0 {
			return pc
		}
		return last - pc
	}
	for i, j := 0, len(p.steps)-1; i < j; i, j = i+1, j-1 {
		p.steps[i], p.steps[j] = p.steps[j], p.steps[i]
	}
	for i := range p.steps {
		p.steps[i].yes, p.steps[i].no = turn(p.steps[i].yes), turn(p.steps[i].no)
	}
	p.start = turn(p.start)
	return p
}

// emit appends the steps of n and returns where they begin.
func (p *Program) emit(n *Node, yes, no int32, slots map[string]int) int32 {
	switch n.Kind {
	case True:
		return yes
	case False:
		return no
	case And:
		for i := len(n.Kids) - 1; i >= 0; i-- {
			yes = p.emit(n.Kids[i], yes, no, slots)
		}
		return yes
	case Or:
		for i := len(n.Kids) - 1; i >= 0; i-- {
			no = p.emit(n.Kids[i], yes, no, slots)
		}
		return no
	}
	p.resolve(n.Term, slots)
	if n.Negated {
		yes, no = no, yes
	}
	p.steps = append(p.steps, step{n.Term, yes, no})
	return int32(len(p.steps) - 1)
}

// resolve says where t's property is found.
func (p *Program) resolve(t *Term, slots map[string]int) {
	switch t.Name {
	case edm.PartitionKeyName:
		t.source, p.keys = sourcePartition, true
	case edm.RowKeyName:
		t.source, p.keys = sourceRow, true
	case edm.TimestampName:
		t.source = sourceTimestamp
	default:
		slot, ok := slots[t.Name]
		if !ok {
			slot = len(p.names)
			slots[t.Name] = slot
			p.names = append(p.names, t.Name)
		}
		t.source = slot
	}
}

// Root returns the expression of p, which must not be changed. It consists of
// And and Or over Compare, without one directly under its like, or is True or
// False alone. It is what a reader of columns evaluates.
func (p *Program) Root() *Node { return p.root }

// Names returns the custom properties that p looks at, which must not be
// changed.
func (p *Program) Names() []string { return p.names }

// Match reports whether row satisfies p. It looks properties up by name, and
// does not allocate.
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

// Binding is a Program tied to rows of one shape. It has memory of its own for
// keys and is used by one goroutine at a time.
type Binding struct {
	program *Program
	index   []int
	keys    keys
}

// Bind ties p to the rows for which lookup gives the index of the custom
// property called name, as for Row.At, or a negative number if they lack it.
func (p *Program) Bind(lookup func(name string) int) *Binding {
	b := &Binding{program: p, index: make([]int, len(p.names))}
	for i, name := range p.names {
		b.index[i] = lookup(name)
	}
	return b
}

// Match reports whether row, which is of the shape b was made for, satisfies
// the Program. It does not allocate once it has seen keys of that length.
func (b *Binding) Match(row edm.Row) bool {
	b.keys.reset()
	return b.program.run(row, b.index, &b.keys)
}

// run follows the steps for one row. A nil index looks properties up by name; k
// may be nil if p looks at no key.
func (p *Program) run(row edm.Row, index []int, k *keys) bool {
	pc := p.start
	for pc >= 0 {
		s := &p.steps[pc]
		var ok bool
		switch src := s.term.source; src {
		case sourcePartition:
			ok = s.term.tests[edm.TypeString].Bytes(k.partitionOf(row))
		case sourceRow:
			ok = s.term.tests[edm.TypeString].Bytes(k.rowOf(row))
		case sourceTimestamp:
			ok = s.term.tests[edm.TypeDateTime].Int(int64(row.Timestamp()))
		default:
			var v edm.Value
			if index == nil {
				v, _ = row.Lookup(s.term.Name)
			} else if i := index[src]; i >= 0 {
				_, v = row.At(i)
			}
			ok = s.term.tests[v.Type()].Value(v)
		}
		if ok {
			pc = s.yes
		} else {
			pc = s.no
		}
	}
	return pc == accept
}

// keys holds the two keys of the row that is looked at, once they were asked
// for.
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
