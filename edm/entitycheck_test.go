package edm_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

func TestValue(t *testing.T) {
	const pair = "\U0001F600"
	for _, c := range []struct {
		name  string
		value edm.Value
		want  edm.Rule
	}{
		{"null", edm.Value{}, 0},
		{"empty String", edm.String(""), 0},
		{"String of nil bytes", edm.StringBytes(nil), 0},
		{"control characters in a String", edm.String("\x00\t\r\n\x7f\u0085"), 0},
		{"U+FFFE and U+FFFF in a String", edm.String("\ufffe\uffff"), 0},
		{"32768 ASCII", edm.String(strings.Repeat("s", 32768)), 0},
		{"32768 of three bytes", edm.String(strings.Repeat("\u6771", 32768)), 0},
		{"16384 pairs", edm.String(strings.Repeat(pair, 16384)), 0},
		{"32769 ASCII", edm.String(strings.Repeat("s", 32769)), edm.RuleValueSize},
		{"32769 of three bytes", edm.String(strings.Repeat("\u6771", 32769)), edm.RuleValueSize},
		{"32767 and a pair", edm.String(strings.Repeat("s", 32767) + pair), edm.RuleValueSize},
		{"16385 pairs", edm.String(strings.Repeat(pair, 16385)), edm.RuleValueSize},
		{"String not UTF-8", edm.String("a\xff"), edm.RuleUTF8},
		{"String cut short", edm.String(strings.Repeat("s", 100) + "\xe6\x9d"), edm.RuleUTF8},
		{"String with an overlong form", edm.String("\xc1\x81"), edm.RuleUTF8},
		{"String with a surrogate", edm.String("\xed\xbf\xbf"), edm.RuleUTF8},
		{"UTF-8 before length", edm.String(strings.Repeat("s", 40000) + "\xff"), edm.RuleUTF8},
		{"empty Binary", edm.Binary(nil), 0},
		{"Binary of any bytes", edm.Binary([]byte{0, 0xff, 0xc0}), 0},
		{"Binary of 65536", edm.Binary(make([]byte, 65536)), 0},
		{"Binary of 65537", edm.Binary(make([]byte, 65537)), edm.RuleValueSize},
		{"first DateTime", edm.DateTime(edm.MinTicks), 0},
		{"last DateTime", edm.DateTime(edm.MaxTicks), 0},
		{"before the first DateTime", edm.DateTime(edm.MinTicks - 1), edm.RuleRange},
		{"after the last DateTime", edm.DateTime(edm.MaxTicks + 1), edm.RuleRange},
		{"Booleans", edm.Boolean(true), 0},
		{"no Boolean", edm.Fixed(edm.TypeBoolean, 2), edm.RuleRange},
		{"least Int32", edm.Int32(math.MinInt32), 0},
		{"greatest Int32", edm.Int32(math.MaxInt32), 0},
		{"beyond Int32", edm.Fixed(edm.TypeInt32, math.MaxInt32+1), edm.RuleRange},
		{"least Int64", edm.Int64(math.MinInt64), 0},
		{"greatest Int64", edm.Int64(math.MaxInt64), 0},
		{"NaN", edm.Double(math.NaN()), 0},
		{"infinity", edm.Double(math.Inf(-1)), 0},
		{"Guid", edm.GuidWords(math.MaxUint64, math.MaxUint64), 0},
		{"no type", edm.Fixed(9, 0), edm.RuleRange},
		{"no Guid", edm.Fixed(edm.TypeGuid, 1), edm.RuleRange},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := edm.CheckValues(edm.Properties{{Name: "Prop", Value: c.value}})
			if got := brokenRule(t, err); got != c.want {
				t.Fatalf("CheckValues of %.60v: broke %v (%v), want %v", c.value, got, err, c.want)
			}
			var e *edm.Error
			if errors.As(err, &e) && e.Name != "Prop" {
				t.Errorf("offender is %q, want Prop", e.Name)
			}
		})
	}
}

func TestEntityOrderOfChecks(t *testing.T) {
	long := edm.String(strings.Repeat("s", 32769))
	many := wideEntity(253).Properties
	large := wideEntity(253).Properties
	for i := range large {
		large[i].Value = edm.Binary(make([]byte, 5000))
	}
	for _, c := range []struct {
		name     string
		entity   edm.Entity
		rule     edm.Rule
		offender string
	}{
		{"key first", edm.Entity{Key: edm.Key{Row: "/"}, Properties: edm.Properties{{Name: "-", Value: long}}}, edm.RuleKey, "RowKey"},
		{"name before its value", edm.Entity{Properties: edm.Properties{{Name: "-", Value: long}}}, edm.RulePropertyName, "-"},
		{"names before values", edm.Entity{Properties: edm.Properties{{Name: "a", Value: long}, {Name: "-"}}}, edm.RulePropertyName, "-"},
		{
			"duplicates before values",
			edm.Entity{Properties: edm.Properties{{Name: "b", Value: long}, {Name: "a"}, {Name: "a"}}},
			edm.RulePropertyDuplicate, "a",
		},
		{"names before duplicates", edm.Entity{Properties: edm.Properties{{Name: "a"}, {Name: "a"}, {Name: "-"}}}, edm.RulePropertyName, "-"},
		{"first value first", edm.Entity{Properties: edm.Properties{{Name: "a", Value: edm.DateTime(-1)}, {Name: "b", Value: long}}}, edm.RuleRange, "a"},
		{
			"value after those of each type", edm.Entity{Properties: edm.Properties{
				{Name: "a"},
				{Name: "b", Value: edm.Boolean(true)},
				{Name: "c", Value: edm.Int32(1)},
				{Name: "d", Value: edm.DateTime(1)},
				{Name: "e", Value: edm.String(strings.Repeat("\u6771", 32768))},
				{Name: "f", Value: long},
			}}, edm.RuleValueSize, "f",
		},
		{"values before count", edm.Entity{Properties: append(many[:253:253], edm.Property{Name: "big", Value: long})}, edm.RuleValueSize, "big"},
		{"duplicates before count", edm.Entity{Properties: append(many[:253:253], many[7])}, edm.RulePropertyDuplicate, "Field7"},
		{"count before size", edm.Entity{Properties: large}, edm.RulePropertyCount, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			err, ok := edm.CheckEntity(&c.entity).(*edm.Error)
			if !ok || err.Rule != c.rule || err.Name != c.offender {
				t.Errorf("CheckEntity = %v, want %v of %q", err, c.rule, c.offender)
			}
		})
	}
}

func TestPropertyCount(t *testing.T) {
	nulls := func(n int) (p edm.Properties) {
		for i := range n {
			p = append(p, edm.Property{Name: fmt.Sprintf("null%d", i)})
		}
		return p
	}
	for _, c := range []struct {
		name       string
		properties edm.Properties
		want       edm.Rule
	}{
		{"none", nil, 0},
		{"252", wideEntity(252).Properties, 0},
		{"253", wideEntity(253).Properties, edm.RulePropertyCount},
		{"252 and nulls", append(wideEntity(252).Properties, nulls(300)...), 0},
		{"253 and nulls", append(nulls(300), wideEntity(253).Properties...), edm.RulePropertyCount},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := edm.CheckEntity(&edm.Entity{Properties: c.properties})
			if got := brokenRule(t, err); got != c.want {
				t.Errorf("%d properties: broke %v (%v), want %v", len(c.properties), got, err, c.want)
			}
		})
	}
}

// TestDuplicates repeats each name, for numbers of properties below and above each
// change of algorithm.
func TestDuplicates(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 4, 5, 6, 17, 252, 255, 256, 257, 300} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := wideEntity(n).Properties
			if err := edm.CheckProperties(p); err != nil {
				t.Fatalf("%d different names: %v", n, err)
			}
			for i := 1; i < n; i += max(1, n/23) {
				saved := p[i].Name
				p[i].Name = p[i/2].Name
				err, ok := edm.CheckProperties(p).(*edm.Error)
				if !ok || err.Rule != edm.RulePropertyDuplicate || err.Name != p[i/2].Name {
					t.Errorf("name %d repeated as name %d of %d: %v, want a duplicate of %q", i/2, i, n, err, p[i/2].Name)
				}
				p[i].Name = saved
			}
		})
	}
	for _, c := range []struct {
		name       string
		properties edm.Properties
		want       edm.Rule
	}{
		{"case differs", edm.Properties{{Name: "birthday"}, {Name: "Birthday"}}, 0},
		{"a null counts", edm.Properties{{Name: "a", Value: edm.Int32(1)}, {Name: "a"}}, edm.RulePropertyDuplicate},
		{"no normalisation", edm.Properties{{Name: "\u00e9"}, {Name: "e\u0301"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := brokenRule(t, edm.CheckProperties(c.properties)); got != c.want {
				t.Errorf("%v: broke %v, want %v", c.properties, got, c.want)
			}
		})
	}
}

func TestNullNames(t *testing.T) {
	for _, c := range []struct {
		name, property string
		want           edm.Rule
	}{
		{"legal", "gone", 0},
		{"illegal", "a-b", edm.RulePropertyName},
		{"reserved", "Timestamp", edm.RulePropertyName},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := edm.CheckEntity(&edm.Entity{Properties: edm.Properties{{Name: c.property}}})
			wantRule(t, c.property, err, c.want)
		})
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		name   string
		entity edm.Entity
		want   int
	}{
		{"empty keys", edm.Entity{}, 4},
		{"keys", edm.Entity{Key: edm.Key{Partition: "abc", Row: "\u6771\U0001F600"}}, 4 + 2*(3+3)},
		{"Timestamp adds nothing", edm.Entity{Timestamp: edm.MaxTicks}, 4},
		{"null", one("Name", edm.Value{}), 4},
		{"String", one("Name", edm.String("a\u00e4\U0001F600")), 4 + 8 + 8 + 4 + 2*4},
		{"empty String", one("Name", edm.String("")), 4 + 8 + 8 + 4},
		{"Binary", one("Name", edm.Binary(make([]byte, 5))), 4 + 8 + 8 + 4 + 5},
		{"Boolean", one("Name", edm.Boolean(true)), 4 + 8 + 8 + 1},
		{"Int32", one("Name", edm.Int32(1)), 4 + 8 + 8 + 4},
		{"Int64", one("Name", edm.Int64(1)), 4 + 8 + 8 + 8},
		{"Double", one("Name", edm.Double(1)), 4 + 8 + 8 + 8},
		{"DateTime", one("Name", edm.DateTime(1)), 4 + 8 + 8 + 8},
		{"Guid", one("Name", edm.GuidWords(1, 1)), 4 + 8 + 8 + 16},
		{"name above U+FFFF", one("\U00020000", edm.Boolean(true)), 4 + 8 + 4 + 1},
		{"several", edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}, Properties: edm.Properties{
			{Name: "a", Value: edm.Int32(1)}, {Name: "b"}, {Name: "c", Value: edm.Int64(1)},
		}}, 4 + 4 + (8 + 2 + 4) + (8 + 2 + 8)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := edm.EntitySize(c.entity.Key, c.entity.Properties)
			if got != c.want {
				t.Errorf("EntitySize of %+v = %d, want %d", c.entity, got, c.want)
			}
		})
	}
}

func one(name string, v edm.Value) edm.Entity {
	return edm.Entity{Properties: edm.Properties{{Name: name, Value: v}}}
}

// TestEntitySizeLimit fills entities to the limit, with text of fewer and of more bytes
// than its size.
func TestEntitySizeLimit(t *testing.T) {
	for name, filler := range map[string]string{"ASCII": "s", "three bytes a unit": "\u6771", "pairs": "\U0001F600"} {
		t.Run(name, func(t *testing.T) {
			units := edm.UTF16Len(filler)
			e := edm.Entity{Key: edm.Key{Partition: "p", Row: "r"}}
			for i := range 15 {
				e.Properties = append(e.Properties,
					edm.Property{Name: fmt.Sprintf("s%02d", i), Value: edm.String(strings.Repeat(filler, edm.MaxStringUnits/units))})
			}
			const overheads = 8 + 2*3 + 4 // of the last property, a Binary
			rest := edm.MaxEntityBytes - edm.EntitySize(e.Key, e.Properties) - overheads
			for _, c := range []struct {
				name string
				size int
				want edm.Rule
			}{{"exact", rest, 0}, {"one more", rest + 1, edm.RuleEntitySize}} {
				full := e
				full.Properties = append(full.Properties[:15:15], edm.Property{Name: "bin", Value: edm.Binary(make([]byte, c.size))})
				if got := brokenRule(t, edm.CheckEntity(&full)); got != c.want {
					t.Errorf("%s (%d bytes): broke %v, want %v", c.name, edm.EntitySize(full.Key, full.Properties), got, c.want)
				}
			}
		})
	}
}
