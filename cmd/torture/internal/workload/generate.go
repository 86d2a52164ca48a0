package workload

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/torture/internal/oracle"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// Profile is a distribution of the kinds of steps of a workload.
type Profile uint8

// The profiles.
const (
	Mixed   Profile = iota // everything
	Singles                // small writes and little else
	Batches                // transactions and groups
	Churn                  // flushes and compactions
	Tables                 // creation and deletion of tables
	Large                  // records as large as segments and larger
	Loads                  // bulk loads beside other writes
	profiles
)

// Profiles lists all profiles.
func Profiles() []Profile { return []Profile{Mixed, Singles, Batches, Churn, Tables, Large, Loads} }

// String returns the profile's name.
func (p Profile) String() string {
	if p >= profiles {
		return fmt.Sprintf("profile %d", p)
	}
	return [...]string{"mixed", "singles", "batches", "churn", "tables", "large", "loads"}[p]
}

const (
	stepSingle = iota
	stepBatch
	stepLarge
	stepGroup
	stepTable
	stepMeta
	stepFlush
	stepCompact
	stepWork
	stepCheckpoint
	stepReopen
	stepKill
	stepRead
	stepLoad
	stepKinds
)

var weights = [profiles][stepKinds]int{
	Mixed: {
		stepSingle: 30, stepBatch: 12, stepLarge: 5, stepGroup: 10, stepTable: 6, stepMeta: 5, stepFlush: 6, stepCompact: 3,
		stepWork: 10, stepCheckpoint: 2, stepReopen: 5, stepKill: 4, stepRead: 2,
	},
	Singles: {stepSingle: 80, stepGroup: 5, stepFlush: 3, stepWork: 4, stepReopen: 4, stepKill: 4},
	Batches: {stepSingle: 10, stepBatch: 40, stepGroup: 30, stepFlush: 4, stepWork: 8, stepReopen: 4, stepKill: 4},
	Churn:   {stepSingle: 30, stepBatch: 5, stepLarge: 8, stepFlush: 20, stepCompact: 6, stepWork: 25, stepReopen: 3, stepKill: 3},
	Tables: {
		stepSingle: 20, stepBatch: 8, stepLarge: 3, stepTable: 30, stepMeta: 15, stepFlush: 8, stepCompact: 5,
		stepWork: 6, stepCheckpoint: 3, stepReopen: 4, stepKill: 4,
	},
	Large: {
		stepSingle: 10, stepBatch: 10, stepLarge: 40, stepGroup: 5, stepFlush: 5, stepCompact: 3,
		stepWork: 20, stepCheckpoint: 2, stepReopen: 3, stepKill: 3,
	},
	Loads: {
		stepSingle: 20, stepBatch: 8, stepLarge: 2, stepTable: 4, stepMeta: 2, stepFlush: 4, stepCompact: 3,
		stepWork: 12, stepCheckpoint: 2, stepReopen: 4, stepKill: 4, stepLoad: 25,
	},
}

// Names and keys are few, so that operations meet on the same entities.
var (
	tableNames = []string{"Alpha", "Beta", "gamma", "DELTA"}
	partitions = []string{"", "a", "a ", "\U0001F600"}
	rows       = []string{"", "0", "1", "\u00e9", "\uffff", "\U0001F600", "10"}
)

// someTable returns the folded name of an existing table.
func (s *Session) someTable() string {
	names := s.State.Tables()
	return names[s.rng.IntN(len(names))]
}

// single writes one entity. The database may refuse it.
func (s *Session) single(ctx context.Context) error {
	table := s.someTable()
	key := edm.Key{Partition: partitions[s.rng.IntN(len(partitions))], Row: rows[s.rng.IntN(len(rows))]}
	return s.write(ctx, table, []store.Op{s.op(s.State.Table(table), key, true)})
}

// batch writes up to 100 entities in one batch.
func (s *Session) batch(ctx context.Context) error {
	n := 2 + s.rng.IntN(6)
	if s.rng.IntN(6) == 0 {
		n = 100
	}
	table := s.someTable()
	partition := partitions[s.rng.IntN(len(partitions))]
	ops := make([]store.Op, n)
	start := s.rng.IntN(len(rows))
	for i := range ops {
		row := rows[(start+i)%len(rows)]
		if i >= len(rows) {
			row = fmt.Sprintf("n%02d", i)
		}
		ops[i] = s.op(s.State.Table(table), edm.Key{Partition: partition, Row: row}, s.rng.IntN(40) == 0)
	}
	return s.write(ctx, table, ops)
}

// large writes an entity that does not fit the rest of a segment, or any segment.
func (s *Session) large(ctx context.Context) error {
	n := 10_000 + s.rng.IntN(50_000)
	if s.rng.IntN(3) == 0 {
		n = 70_000 + s.rng.IntN(100_000)
	}
	var props edm.Properties
	for i := 0; n > 0; i++ {
		size := min(n, edm.MaxBinaryBytes)
		props = append(props, edm.Property{Name: fmt.Sprintf("L%d", i), Value: edm.Binary(s.bytes(size))})
		n -= size
	}
	key := edm.Key{Partition: "large", Row: rows[s.rng.IntN(3)]}
	return s.write(ctx, s.someTable(), []store.Op{store.InsertOrReplace(edm.Entity{Key: key, Properties: props})})
}

// op returns an operation on key of t. The database must accept it, unless wild is set.
func (s *Session) op(t *oracle.Table, key edm.Key, wild bool) store.Op {
	old, exists := t.Rows[key]
	e := edm.Entity{Key: key, Properties: s.properties()}
	kind := store.OpKind(1 + s.rng.IntN(6))
	if !wild && (exists == (kind == store.OpInsert)) {
		kind = store.OpInsertOrReplace
	}
	if !wild && !exists {
		kind = [...]store.OpKind{store.OpInsert, store.OpInsertOrMerge, store.OpInsertOrReplace}[s.rng.IntN(3)]
	}
	match := store.Any
	if s.rng.IntN(2) == 0 {
		match = old.Timestamp.ETag()
	}
	if wild && s.rng.IntN(6) == 0 {
		match = (old.Timestamp + 1).ETag()
	}
	return store.Op{Kind: kind, Entity: e, IfMatch: match}
}

// properties returns up to eight properties of random types.
func (s *Session) properties() edm.Properties {
	var props edm.Properties
	first := s.rng.IntN(8)
	for i := range s.rng.IntN(9) {
		t := edm.Type(1 + (first+i)%8)
		props = append(props, edm.Property{Name: strings.TrimPrefix(t.String(), "Edm."), Value: s.value(t)})
	}
	return props
}

func (s *Session) value(t edm.Type) edm.Value {
	switch t {
	case edm.TypeString:
		return edm.String(strings.Repeat("\u8868x", s.textLen()/4))
	case edm.TypeBinary:
		return edm.Binary(s.bytes(s.textLen()))
	case edm.TypeBoolean:
		return edm.Boolean(s.rng.IntN(2) == 0)
	case edm.TypeInt32:
		return edm.Int32(int32(s.rng.Uint32()))
	case edm.TypeInt64:
		return edm.Int64(int64(s.rng.Uint64()))
	case edm.TypeDouble:
		return edm.Double(math.Float64frombits(s.rng.Uint64()))
	case edm.TypeDateTime:
		return edm.DateTime(edm.Ticks(s.rng.Int64N(int64(edm.MaxTicks))))
	default:
		return edm.GuidWords(s.rng.Uint64(), s.rng.Uint64())
	}
}

func (s *Session) textLen() int {
	switch s.rng.IntN(20) {
	case 0:
		return s.rng.IntN(8000)
	case 1, 2, 3:
		return s.rng.IntN(1000)
	}
	return s.rng.IntN(24)
}

func (s *Session) bytes(n int) []byte {
	b := make([]byte, n)
	for i := 0; i+8 <= n; i += 8 {
		x := s.rng.Uint64()
		for j := range 8 {
			b[i+j] = byte(x >> (8 * j))
		}
	}
	return b
}
