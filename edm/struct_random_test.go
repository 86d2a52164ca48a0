package edm_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/race"
)

// leaves are the types of the fields of random structs.
var leaves = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
	reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
	reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](),
	reflect.TypeFor[digest](), reflect.TypeFor[edm.GUID](), reflect.TypeFor[uuid](), reflect.TypeFor[time.Time](), reflect.TypeFor[edm.Ticks](),
	reflect.TypeFor[edm.Value](), reflect.TypeFor[level](), reflect.TypeFor[labels](), reflect.TypeFor[netip.Addr](), reflect.TypeFor[big.Int](),
}

// randomLeaf returns a value that can be stored and the value that Marshal should
// return for it.
func randomLeaf(g *rand.Rand, t reflect.Type) (reflect.Value, edm.Value) {
	n := int64(g.Uint64()) >> g.IntN(64)
	small, u := n&0x7F, uint64(n)&math.MaxInt64
	text := strings.Repeat(string(rune('a'+g.IntN(26))), g.IntN(3)*g.IntN(40))
	var v any
	var want edm.Value
	switch reflect.Zero(t).Interface().(type) {
	case bool:
		v, want = n > 0, edm.Boolean(n > 0)
	case int:
		v, want = int(n), edm.Int64(n)
	case int8:
		v, want = int8(n), edm.Int32(int32(int8(n)))
	case int16:
		v, want = int16(n), edm.Int32(int32(int16(n)))
	case int32:
		v, want = int32(n), edm.Int32(int32(n))
	case int64:
		v, want = n, edm.Int64(n)
	case uint:
		v, want = uint(u), edm.Int64(int64(u))
	case uint8:
		v, want = uint8(n), edm.Int32(int32(uint8(n)))
	case uint16:
		v, want = uint16(n), edm.Int32(int32(uint16(n)))
	case uint32:
		v, want = uint32(n), edm.Int64(int64(uint32(n)))
	case uint64:
		v, want = u, edm.Int64(int64(u))
	case float32:
		f := math.Float32frombits(uint32(n)&^(1<<30) | uint32(small)) // no NaN
		v, want = f, edm.Double(float64(f))
	case float64:
		f := math.Float64frombits(g.Uint64())
		v, want = f, edm.Double(f)
	case string:
		v, want = text, edm.String(text)
	case []byte:
		v, want = []byte(text), edm.Binary([]byte(text))
	case digest:
		v, want = digest{byte(n), 3: 1}, edm.Binary([]byte{byte(n), 0, 0, 1})
	case edm.GUID:
		v, want = edm.GUID{byte(n)}, edm.Guid(edm.GUID{byte(n)})
	case uuid:
		v, want = uuid{7: byte(n)}, edm.Guid(edm.GUID{7: byte(n)})
	case time.Time:
		ticks := edm.Ticks(u) % edm.MaxTicks
		v, want = ticks.Time(), edm.DateTime(ticks)
	case edm.Ticks:
		ticks := edm.Ticks(u) % edm.MaxTicks
		v, want = ticks, edm.DateTime(ticks)
	case edm.Value:
		v, want = edm.String(text), edm.String(text)
	case level:
		v, want = level(n), edm.Int32(int32(int16(n)))
	case labels:
		v, want = labels{"x", "y"}, edm.String("x+y")
	case netip.Addr:
		a := netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
		v, want = a, edm.String(a.String())
	case big.Int:
		v, want = *big.NewInt(n), edm.String(fmt.Sprint(n))
	}
	return reflect.ValueOf(v), want
}

// randomStruct returns a new random struct, and what Marshal should return for it.
func randomStruct(g *rand.Rand) (reflect.Value, edm.Properties) {
	type planned struct {
		v       reflect.Value
		want    edm.Value
		pointer bool
		zero    bool
	}
	fields := []reflect.StructField{
		{Name: "PartitionKey", Type: reflect.TypeFor[string]()},
		{Name: "ID", Type: reflect.TypeFor[string](), Tag: `table:",rk"`},
	}
	var plan []planned
	var want edm.Properties
	for i := range g.IntN(30) {
		leaf := leaves[g.IntN(len(leaves))]
		p := planned{pointer: g.IntN(4) == 0, zero: g.IntN(4) == 0}
		f := reflect.StructField{Name: fmt.Sprintf("F%d", g.IntN(1000)*100+i), Type: leaf}
		name := f.Name
		if g.IntN(2) == 0 {
			name = fmt.Sprintf("p%d", g.IntN(1000)*100+i)
		}
		omit := g.IntN(2) == 0
		f.Tag = reflect.StructTag(fmt.Sprintf(`table:"%s"`, name))
		if omit {
			f.Tag = reflect.StructTag(fmt.Sprintf(`table:"%s,omitempty"`, name))
		}
		p.v, p.want = randomLeaf(g, leaf)
		if p.pointer {
			f.Type = reflect.PointerTo(leaf)
		} else if !omit || leaf == reflect.TypeFor[big.Int]() {
			p.zero = false // for some types an error
		}
		fields, plan = append(fields, f), append(plan, p)
		empty := p.v.IsZero() || p.v.Kind() == reflect.Slice && p.v.Len() == 0
		if !p.zero && (p.pointer || !omit || !empty) {
			want = append(want, edm.Property{Name: name, Value: p.want})
		}
	}
	v := reflect.New(reflect.StructOf(fields))
	v.Elem().Field(1).SetString("row")
	for i, p := range plan {
		f := v.Elem().Field(i + 2)
		switch {
		case p.zero:
		case p.pointer:
			f.Set(reflect.New(p.v.Type()))
			f.Elem().Set(p.v)
		default:
			f.Set(p.v)
		}
	}
	return v, want
}

// TestRandomStructs compares the entities of random structs of random types with
// simple code, and unmarshals them in several orders. Repeat a failure with
// go test -run 'TestRandomStructs/seed=N$' ./edm
func TestRandomStructs(t *testing.T) {
	race.SkipOneGoroutine(t)
	for seed := range uint64(300) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			g := rand.New(rand.NewPCG(seed, 0))
			v, want := randomStruct(g)
			e, err := edm.Marshal(v.Interface())
			if diff := cmp.Diff(want, e.Properties); err != nil || len(want)+len(e.Properties) > 0 && diff != "" {
				t.Fatalf("%v: %v (-want +got):\n%s", v.Type(), err, diff)
			}
			if byValue, err := edm.Marshal(v.Elem().Interface()); err != nil || cmp.Diff(e, byValue) != "" {
				t.Fatalf("%v by value: %v and %v, want %v", v.Type(), byValue, err, e)
			}
			for range 3 {
				back := reflect.New(v.Type().Elem())
				if err := edm.Unmarshal(e.View(), back.Interface()); err != nil {
					t.Fatalf("%v: %v", v.Type(), err)
				}
				again, err := edm.Marshal(back.Interface())
				if err != nil || again.Key != e.Key || cmp.Diff(want, again.Properties) != "" && len(want) > 0 {
					t.Fatalf("%v: got %v and %v, want %v", v.Type(), again, err, e)
				}
				g.Shuffle(len(e.Properties), func(i, j int) {
					e.Properties[i], e.Properties[j] = e.Properties[j], e.Properties[i]
				})
			}
		})
	}
}

// Structs whose embedded fields hide others. Both tags are equal, so that
// encoding/json has the same rules.
type (
	deepest struct {
		A, B, C, D string
		X          string `table:"E" json:"E"`
	}
	deep struct {
		deepest
		B string
		Y string `table:"C" json:"C"`
	}
	Beside struct {
		A string `table:"A" json:"A"`
		F string
		G *int `table:"-" json:"-"`
	}
	hiding struct {
		edm.Key `json:"-"`
		deep
		*Beside
		E string
		Z string `table:"F" json:"F"`
		x string
	}
	tagged struct {
		edm.Key `json:"-"`
		namesA
		Other struct{ Name string } `table:"-" json:"-"`
		Lower string                `table:"name" json:"name"`
	}
	tagWins struct {
		edm.Key `json:"-"`
		namesA
		taggedB
	}
	taggedB struct {
		B string `table:"Name" json:"Name"`
	}
)

// TestEmbeddedFields compares the properties of structs with embedded fields with
// the members that encoding/json gives them, both ways.
func TestEmbeddedFields(t *testing.T) {
	h := hiding{deep: deep{deepest: deepest{A: "1", B: "2", C: "3", D: "4", X: "5"}, B: "6", Y: "7"}, Beside: &Beside{A: "8", F: "9"}, E: "10", Z: "11", x: "12"}
	without := h
	without.Beside = nil
	for _, v := range []any{
		&h, &without,
		&tagged{namesA: namesA{"1"}, Lower: "2"},
		&tagWins{namesA: namesA{"1"}, taggedB: taggedB{"2"}},
	} {
		e, err := edm.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
			continue
		}
		got := map[string]string{}
		for _, p := range e.Properties {
			got[p.Name], _ = p.Value.Text()
		}
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != len(e.Properties) {
			t.Errorf("%T (-json +got):\n%s", v, diff)
		}
		slices.Reverse(e.Properties)
		ours, theirs := reflect.New(reflect.TypeOf(v).Elem()), reflect.New(reflect.TypeOf(v).Elem())
		if err := edm.Unmarshal(e.View(), ours.Interface()); err != nil {
			t.Errorf("%T: %v", v, err)
		}
		if err := json.Unmarshal(text, theirs.Interface()); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(ours.Interface(), theirs.Interface()) {
			t.Errorf("%T: got %+v, want %+v", v, ours, theirs)
		}
	}
}

// FuzzUnmarshal reads the properties of a JSON object into all. What it reads gives
// the same struct again.
func FuzzUnmarshal(f *testing.F) {
	e, err := edm.Marshal(oneAll())
	if err != nil {
		f.Fatal(err)
	}
	text, err := e.Properties.MarshalJSON()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"Int8":127,"Float32":1e300,"Uint8":-1,"Number":"1e5","Digest@odata.type":"Edm.Binary","Digest":"AAAA"}`))
	f.Add([]byte(`{"Int8":127,"Int16":128,"Address":"fe80::1%eth0","Labels":"","Big":"-0x1","Unknown":1.5,"Value":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var p edm.Properties
		if p.UnmarshalJSON(text) != nil {
			return
		}
		e := edm.Entity{Properties: p}
		var first, second all
		if edm.Unmarshal(e.View(), &first) != nil {
			return
		}
		if first.Time.IsZero() {
			first.Time = noon
		}
		e, err := edm.Marshal(&first)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if err := edm.Unmarshal(e.View(), &second); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := edm.Marshal(&second)
		if diff := cmp.Diff(e, again); err != nil || diff != "" {
			t.Fatalf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	})
}
