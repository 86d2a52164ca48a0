package store

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// rowOf returns an entity of partition p and row r.
func rowOf(p, r string, props ...edm.Property) edm.Entity {
	return edm.Entity{Key: edm.Key{Partition: p, Row: r}, Properties: props}
}

func prop(name string, v edm.Value) edm.Property { return edm.Property{Name: name, Value: v} }

// twelve returns an entity with twelve properties.
func twelve(p, r string) edm.Entity {
	return rowOf(p, r,
		prop("Name", edm.String("Ada Lovelace")), prop("Mail", edm.String("ada@example.org")),
		prop("City", edm.String("London")), prop("Note", edm.String("wrote the first program")),
		prop("Age", edm.Int32(36)), prop("Visits", edm.Int64(1<<40)), prop("Score", edm.Double(0.5)),
		prop("Active", edm.Boolean(true)), prop("Seen", edm.DateTime(edm.MaxTicks)),
		prop("Id", edm.GuidWords(1, 2)), prop("Photo", edm.Binary(make([]byte, 32))), prop("Rank", edm.Int32(1)))
}

func batch(n int, row func(i int) string) []Op {
	ops := make([]Op, n)
	for i := range ops {
		ops[i] = InsertOrReplace(twelve("partition", row(i)))
	}
	return ops
}

func rising(i int) string   { return fmt.Sprintf("%09d", i) }
func shuffled(i int) string { return fmt.Sprintf("%09d", i*7919%10007) }

// propertySize returns what a property adds to the size of an entity.
func propertySize(name string, v edm.Value) int {
	return edm.EntitySize(edm.Key{}, edm.Properties{prop(name, v)}) - edm.EntitySize(edm.Key{}, nil)
}

// sized returns properties that count n bytes in an entity's size.
func sized(n int) edm.Properties {
	zeros := make([]byte, 60_000)
	var p edm.Properties
	for i := 0; n > 0; i++ {
		name := fmt.Sprintf("p%03d", i)
		over := propertySize(name, edm.Binary(nil))
		take := min(n, len(zeros)+over)
		if rest := n - take; rest > 0 && rest < over {
			take -= over
		}
		p = append(p, prop(name, edm.Binary(zeros[:take-over])))
		n -= take
	}
	return p
}

func TestCheckBatch(t *testing.T) {
	bad := prop("a-b", edm.Int32(1))
	late := prop("When", edm.DateTime(edm.MaxTicks+1))
	e := func(p, r string, props ...edm.Property) Op { return Insert(rowOf(p, r, props...)) }
	many := func(n int, more ...Op) []Op { return append(batch(n, rising), more...) }
	full := Op{Kind: OpMerge, Entity: edm.Entity{Properties: sized(edm.MaxBatchBytes - edm.EntitySize(edm.Key{}, nil))}}
	cases := []struct {
		name  string
		table string
		ops   []Op
		index int
		rule  edm.Rule // 0: no failure
	}{
		{"one", "abc", many(1), 0, 0},
		{"hundred", "abc", many(100), 0, 0},
		{"hundred in no order", "abc", batch(100, shuffled), 0, 0},
		{"table", "a-b", []Op{e("p", "/", bad)}, 0, edm.RuleTableName},
		{"table's length", "ab", nil, 0, edm.RuleTableNameLength},
		{"none", "abc", nil, 0, edm.RuleBatchCount},
		{"too many", "abc", many(101), 99, edm.RuleBatchCount},
		{"too many in no order", "abc", batch(300, shuffled), 99, edm.RuleBatchCount},
		{"too many, then a bad key", "abc", many(104, e("partition", "#")), 104, edm.RuleKey},
		{"too many, then a duplicate", "abc", append(batch(300, shuffled), e("partition", shuffled(200))), 300, edm.RuleBatchDuplicate},
		{"key before name", "abc", []Op{e("p", "/", bad, late)}, 0, edm.RuleKey},
		{"partition before row", "abc", []Op{e("\xff", "/")}, 0, edm.RuleUTF8},
		{"name before value", "abc", []Op{e("p", "1", late, bad)}, 0, edm.RulePropertyName},
		{"name twice", "abc", []Op{e("p", "1", late, prop("a", edm.Int32(1)), prop("a", edm.Int32(1)))}, 0, edm.RulePropertyDuplicate},
		{"value", "abc", []Op{e("p", "1"), e("q", "1", late)}, 1, edm.RuleRange},
		{"partition", "abc", []Op{e("p", "1"), e("p", "2"), e("q", "1"), e("q", "1")}, 2, edm.RuleBatchPartition},
		{"duplicate", "abc", []Op{e("p", "1"), e("p", "2"), e("p", "1"), e("q", "3")}, 2, edm.RuleBatchDuplicate},
		{"duplicate next to it", "abc", []Op{e("p", "1"), e("p", "1"), e("p", "/")}, 1, edm.RuleBatchDuplicate},
		{"first op first, no order", "abc", []Op{e("p", "3"), e("p", "2"), e("p", "1", late), e("p", "/")}, 2, edm.RuleRange},
		{"partition, no order", "abc", []Op{e("p", "3"), e("p", "2"), e("q", "3"), e("p", "/")}, 2, edm.RuleBatchPartition},
		{"null's name", "abc", []Op{e("p", "1", prop("a-b", edm.Value{}))}, 0, edm.RulePropertyName},
		{"deletion's properties", "abc", []Op{{Kind: OpDelete, Entity: rowOf("p", "1", bad, late)}}, 0, 0},
		{"deletion's key", "abc", []Op{Delete(edm.Key{Row: "\n"}, Any)}, 0, edm.RuleKey},
		{"all bytes", "abc", []Op{full}, 0, 0},
		{"a byte too many", "abc", []Op{Delete(edm.Key{Row: "1"}, Any), full}, 1, edm.RuleBatchBytes},
		{"the first op above the limit", "abc", []Op{full, Delete(edm.Key{Row: "1"}, Any), Delete(edm.Key{Row: "2"}, Any)}, 1, edm.RuleBatchBytes},
		{"count before bytes", "abc", append([]Op{Merge(rowOf("partition", "", full.Entity.Properties...), Any)}, many(100)...), 99, edm.RuleBatchCount},
		{"deletions do not count properties", "abc", []Op{full, {Kind: OpDelete, Entity: rowOf("", "1", full.Entity.Properties...)}}, 1, edm.RuleBatchBytes},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := CheckBatch(c.table, c.ops, nil)
			if c.rule == 0 {
				if err != nil {
					t.Fatalf("got %v, want no error", err)
				}
				return
			}
			var op *OpError
			var broken *edm.Error
			if !errors.As(err, &op) || !errors.As(err, &broken) || !errors.Is(err, ErrInvalid) {
				t.Fatalf("got %#v, want an OpError of an edm.Error", err)
			}
			if op.Index != c.index || broken.Rule != c.rule || op.Executed {
				t.Errorf("got op %d, %v, executed %v; want op %d, %v, not executed", op.Index, broken.Rule, op.Executed, c.index, c.rule)
			}
		})
	}
}

// TestCheckBatchDuplicates compares with a search of all pairs. Few of the random
// rows are equal.
func TestCheckBatchDuplicates(t *testing.T) {
	const seed = 1
	rnd := rand.New(rand.NewPCG(seed, seed))
	found := 0
	for round := range 2000 {
		n := 1 + rnd.IntN(edm.MaxBatchOps)
		if round%20 == 0 {
			n += edm.MaxBatchOps
		}
		var rows []string
		ops := make([]Op, n)
		want := -1
		for i := range ops {
			row := strconv.Itoa(rnd.IntN(n * n))
			if slices.Contains(rows, row) && want < 0 {
				want = i
			}
			rows = append(rows, row)
			ops[i] = InsertOrMerge(rowOf("p", row))
		}
		err := CheckBatch("abc", ops, nil)
		var op *OpError
		var broken *edm.Error
		switch {
		case want >= 0:
			found++
			if !errors.As(err, &op) || !errors.As(err, &broken) || op.Index != want || broken.Rule != edm.RuleBatchDuplicate {
				t.Fatalf("seed %d, round %d: rows %q: got %v, want a duplicate in op %d", seed, round, rows, err, want)
			}
		case n <= edm.MaxBatchOps && err != nil:
			t.Fatalf("seed %d, round %d: rows %q: got %v, want no error", seed, round, rows, err)
		}
	}
	if found < 100 || found > 1900 {
		t.Errorf("%d of 2000 batches had a duplicate, want 100 to 1900", found)
	}
}

func TestCheckBatchKind(t *testing.T) {
	for _, kind := range []OpKind{0, OpDelete + 1} {
		err := CheckBatch("abc", []Op{Insert(rowOf("p", "1")), {Kind: kind, Entity: rowOf("p", "/")}}, nil)
		var op *OpError
		if !errors.As(err, &op) || op.Index != 1 || !errors.Is(err, ErrInvalid) || !errors.Is(err, errKind) {
			t.Errorf("kind %d: got %v, want an invalid kind in op 1", kind, err)
		}
	}
}

// TestCheckedProperties checks that CheckBatch skips only the properties that its caller
// has checked, and takes their length for the size of the batch.
func TestCheckedProperties(t *testing.T) {
	ops := []Op{
		Insert(rowOf("p", "1", prop("a-b", edm.Int32(1)), prop("a-b", edm.Int32(1)))),
		Insert(rowOf("p", "2", prop("c-d", edm.Int32(1)))),
	}
	bytes := 6
	checked := func(i int, p edm.Properties) (int, bool) { return bytes, i == 0 && p[0].Name == "a-b" }
	var op *OpError
	if err := CheckBatch("abc", ops, checked); !errors.As(err, &op) || op.Index != 1 {
		t.Errorf("got %v, want only the unknown name of op 1 refused", err)
	}
	for i, size := range []int{edm.MaxBatchBytes / 16, edm.MaxBatchBytes} {
		ops = ops[:0]
		for n := range size / (64 << 10) {
			text := strings.Repeat("\u20ac", 32<<10)
			ops = append(ops, Insert(rowOf("p", fmt.Sprintf("%03d", n), prop("a-b", edm.String(text)))))
		}
		all := func(int, edm.Properties) (int, bool) { return 3 + 3*32<<10, true }
		err := CheckBatch("abc", ops, all)
		if tooLarge := errors.Is(err, ErrTooLarge); tooLarge != (i == 1) {
			t.Errorf("%d ops of 64 KiB: got %v", len(ops), err)
		}
	}
}

func TestCheckQuery(t *testing.T) {
	for _, c := range []struct {
		from *edm.Key
		name string
	}{
		{nil, ""},
		{&edm.Key{Partition: "a/b", Row: strings.Repeat("x", 5000)}, ""},
		{&edm.Key{Partition: "\xff"}, edm.PartitionKeyName},
		{&edm.Key{Row: "\xed\xa0\x80"}, edm.RowKeyName},
	} {
		err := CheckQuery(Query{From: c.from})
		var broken *edm.Error
		if c.name == "" {
			if err != nil {
				t.Errorf("%v: got %v, want no error", c.from, err)
			}
		} else if !errors.As(err, &broken) || broken.Rule != edm.RuleUTF8 || broken.Name != c.name {
			t.Errorf("%v: got %v, want %v refused", c.from, err, c.name)
		}
	}
}

// TestCheckQueryLimits checks that the error names the limit.
func TestCheckQueryLimits(t *testing.T) {
	for name, q := range map[string]Query{
		"":            {Limit: math.MaxInt, Budget: math.MaxInt, BudgetBytes: math.MaxInt},
		"Limit":       {Limit: -1, Budget: 1},
		"Budget":      {Budget: -1},
		"BudgetBytes": {BudgetBytes: math.MinInt},
	} {
		switch err := CheckQuery(q); {
		case name == "":
			if err != nil {
				t.Errorf("the greatest limits: got %v, want no error", err)
			}
		case !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), name+" "):
			t.Errorf("a negative %s: got %v", name, err)
		}
	}
}

func TestCheckBatchAllocs(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
	}{{"one", batch(1, rising)}, {"hundred", batch(100, rising)}, {"hundred in no order", batch(100, shuffled)}} {
		if n := testing.AllocsPerRun(10, func() { _ = CheckBatch("customers", c.ops, nil) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", c.name, n)
		}
	}
}

func BenchmarkCheckBatch(b *testing.B) {
	checked := func(int, edm.Properties) (int, bool) { return 1000, true }
	for _, c := range []struct {
		name    string
		checked func(int, edm.Properties) (int, bool)
		ops     []Op
	}{
		{"ops=1", nil, batch(1, rising)},
		{"ops=1/properties=checked", checked, batch(1, rising)},
		{"ops=100/properties=checked", checked, batch(100, rising)},
		{"ops=100/properties=checked/order=none", checked, batch(100, shuffled)},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := CheckBatch("customers", c.ops, c.checked); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(c.ops)), "ns/entity")
		})
	}
}

func TestBatchChecks(t *testing.T) {
	k := edm.Key{Partition: "p", Row: "r"}
	for _, c := range []struct {
		name     string
		err      error
		want     edm.Rule
		tooLarge bool
		text     string
	}{
		{"no operation", checkBatchCount(0), edm.RuleBatchCount, false, `no operation; a batch has 1 to 100 operations`},
		{"1 operation", checkBatchCount(1), 0, false, ""},
		{"100 operations", checkBatchCount(100), 0, false, ""},
		{"101 operations", checkBatchCount(101), edm.RuleBatchCount, true, `101 operations; a batch has 1 to 100 operations`},
		{"100 MiB", checkBatchBytes(100 << 20), 0, false, ""},
		{"100 MiB and a byte", checkBatchBytes(100<<20 + 1), edm.RuleBatchBytes, true, `a batch of 104857601 bytes; a batch has at most 104857600 bytes`},
		{"same partition", checkBatchPartition(k, edm.Key{Partition: "p", Row: "s"}), 0, false, ""},
		{
			"other partition", checkBatchPartition(k, edm.Key{Partition: "P", Row: "r"}), edm.RuleBatchPartition, false,
			`PartitionKey: "P" in a batch on "p"; all operations of a batch have one PartitionKey`,
		},
		{"duplicate", batchDuplicate(k), edm.RuleBatchDuplicate, false, `RowKey: a second operation on "r"; a batch has each key once`},
		{"64 KiB of metadata", CheckMeta("Orders", 64<<10), 0, false, ""},
		{
			"64 KiB of metadata and a byte", CheckMeta("Orders", 64<<10+1), edm.RuleMetaSize, true,
			`metadata of table Orders: 65537 bytes; metadata has at most 65536 bytes`,
		},
		{"metadata of the account", CheckMeta("", 70000), edm.RuleMetaSize, true, `account metadata: 70000 bytes; metadata has at most 65536 bytes`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var broken *edm.Error
			if c.want == 0 {
				if c.err != nil {
					t.Errorf("got %v, want no error", c.err)
				}
				return
			}
			if !errors.As(c.err, &broken) || broken.Rule != c.want || !errors.Is(c.err, ErrInvalid) {
				t.Fatalf("got %v, want rule %v broken", c.err, c.want)
			}
			if got := errors.Is(c.err, ErrTooLarge); got != c.tooLarge {
				t.Errorf("errors.Is(%v, ErrTooLarge) = %v, want %v", c.err, got, c.tooLarge)
			}
			if got := c.err.Error(); got != c.text {
				t.Errorf("message\n got %s\nwant %s", got, c.text)
			}
		})
	}
}

// TestBatchErrorTextIsShort passes names of a megabyte.
func TestBatchErrorTextIsShort(t *testing.T) {
	for name, s := range map[string]string{
		"ASCII":   strings.Repeat("k", 1<<20),
		"control": strings.Repeat("\x01", 1<<20),
		"pairs":   strings.Repeat("\U0010ffff", 1<<18),
	} {
		t.Run(name, func(t *testing.T) {
			for _, err := range []error{
				CheckMeta(s, 1<<20), checkBatchPartition(edm.Key{Partition: s}, edm.Key{}), batchDuplicate(edm.Key{Row: s}),
			} {
				if text := err.Error(); len(text) > 800 {
					t.Errorf("message of %d bytes, want at most 800: %.200s", len(text), text)
				}
			}
		})
	}
}
