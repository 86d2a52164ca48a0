package odata_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// TestParserKeepsEntities parses many entities, which must all stay valid until
// Reset, and then others into the same memory.
func TestParserKeepsEntities(t *testing.T) {
	var p odata.Parser
	for round := range 3 {
		var texts [][]byte
		var got []edm.Entity
		for i := range 120 {
			e := everyType(t)
			e.Timestamp = 0
			e.Key.Row = fmt.Sprintf("%d in %d %s", i, round, strings.Repeat("\u8868", i))
			e.Properties[0].Value = edm.String(strings.Repeat("\"\n", 10*i) + "\u00f4")
			e.Properties[7].Value = edm.Binary(bytes.Repeat([]byte{byte(i)}, i))
			e.Properties[6].Value = edm.GuidWords(uint64(i), uint64(round))
			text := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal, ASCII: i%2 == 0})
			texts = append(texts, text)
			read, err := p.ParseEntity(text, odata.ParseOptions{})
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			got = append(got, read)
			if _, err := p.ParseEntity([]byte(`{"PartitionKey":"p","RowKey":"r","a":"\u0041","b":5,"c@odata.type":"Edm.Guid","c":"x"}`),
				odata.ParseOptions{}); err == nil {
				t.Fatal("the Guid x was accepted")
			}
		}
		for i, text := range texts {
			want, err := odata.ParseEntity(text, odata.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, got[i], sameBits); d != "" {
				t.Fatalf("round %d, entity %d, from %s (-want +got):\n%s", round, i, text, d)
			}
		}
		key := got[0].Key
		p.Reset()
		if _, err := p.ParseEntity([]byte(`{"PartitionKey":"other","RowKey":"other"}`), odata.ParseOptions{}); err != nil {
			t.Fatal(err)
		}
		if want := (edm.Key{Partition: "a", Row: fmt.Sprintf("0 in %d ", round)}); key != want {
			t.Errorf("after Reset the first key is %+v, want %+v", key, want)
		}
	}
}

func TestParserAllocations(t *testing.T) {
	e := tenProperties(t)
	src := odata.AppendEntity(nil, e.View(), odata.Options{Level: odata.Minimal})
	for _, entities := range []int{1, 100} {
		var p odata.Parser
		n := testing.AllocsPerRun(100, func() {
			for range entities {
				if _, err := p.ParseEntity(src, odata.ParseOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			p.Reset()
		})
		if most := float64(entities) / 20; n > most {
			t.Errorf("parsing %d entities allocates %v times, want at most %v", entities, n, most)
		}
	}
}

// TestParserParsesIndependently parses every text after every other, and again after
// both. The result must be the same as for the text alone, whatever the texts share.
func TestParserParsesIndependently(t *testing.T) {
	texts := []string{
		`{}`, `{`, ``, `x`, `,"RowKey":"r"}`, `{"PartitionKey":"p","RowKey":"r"`, `{"PartitionKey":"p","RowKey":"r","a":1,}`, `{"PartitionKey":"p","RowKey":"r"}}`,
	}
	for _, members := range []string{
		`"a":1`, `"a":2,"b":"x"`, `"b":"x","a":2`, `"a": 1`, `"a" :1`, ` "a":1`, `"a":1 `, `"a":1,"a":2`, `"\u0061":1`, `"a":1,"\u0061":1`,
		`"a@odata.type":"Edm.Int64","a":"1"`, `"a":"1","a@odata.type":"Edm.Int64"`, `"a@odata.type":"Edm.Int64","b":1,"a":"1"`,
		`"a@odata.type":"Edm.Int32","a":"1"`, `"a@odata.type":"Edm.Int\u00364","a":"1"`, `"a@odata.type":"Edm.X","a":"1"`, `"a@odata.type":"Edm.X","a":null`,
		`"a@odata.type":"Edm.X"`, `"a@odata.type":1,"a":"1"`, `"a@odata.type":"Edm.Int64","a":"x"`, `"a@odata.type":"Edm.Int64","a@odata.type":"Edm.Int64"`,
		`"Timestamp":"x","a":1`, `"Timestamp":[1,{"x":[]}],"a":1`, `"Timestamp@odata.type":"Edm.DateTime","Timestamp":"x"`, `"odata.x":{},"a":1`,
		`"a@odata.x":{},"a":1`, `"odata.x":{,"a":1`,
		`"a":null,"b":1`, `"a":{}`, `"a":"x`, `"a":"\x"`, `"a":tru`, `"a"1`, `a:1`, `"PartitionKey":"p"`, `"a":1;"b":1`,
		`"` + strings.Repeat("n", 20_000) + `":1,"a":1`,
	} {
		texts = append(texts, `{"PartitionKey":"p","RowKey":"r",`+members+`}`, `{`+members+`,"RowKey@odata.type":"Edm.String","RowKey":"r","PartitionKey":"q"}`)
	}
	for _, text := range texts {
		var alone odata.Parser
		want, wantErr := alone.ParseEntity([]byte(text), odata.ParseOptions{})
		for _, before := range texts {
			var p odata.Parser
			_, _ = p.ParseEntity([]byte(before), odata.ParseOptions{})
			for range 2 {
				got, err := p.ParseEntity([]byte(text), odata.ParseOptions{})
				if !cmp.Equal(got, want, sameBits) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%.200q after %.200q: %+v, %v, want %+v, %v", text, before, got, err, want, wantErr)
				}
			}
		}
	}
}

// TestParserOfOptionalMembers parses random selections of the same members, some in
// another order or twice, with one Parser. Each result must be that of the text alone.
func TestParserOfOptionalMembers(t *testing.T) {
	members := []string{
		`"PartitionKey":"p"`, `"RowKey":"r"`, `"a@odata.type":"Edm.Int64"`, `"a":"1"`, `"b":2`, `"c@odata.type":"Edm.X"`, `"c":null`, `"d":"x"`,
		`"Timestamp":{}`, `"e@odata.type":"Edm.Guid"`, `"e":"38d4d7e6-388d-4f5a-9a3b-7e0640a2f49f"`, `"f":3.5`, `"f@odata.type":"Edm.Double"`,
	}
	for i := range 12 { // members enough for an index of names
		members = append(members, fmt.Sprintf(`"n%d":%d`, i, i))
	}
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("TABLEROCK_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("repeat: TABLEROCK_SEED=%d go test ./internal/odata -run TestParserOfOptionalMembers", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	var p odata.Parser
	for range 5_000 {
		var some []string
		for i, m := range members {
			if i < 2 && g.IntN(50) > 0 || g.IntN(6) > 0 {
				some = append(some, m)
			}
		}
		if n := len(some); n > 1 && g.IntN(10) == 0 {
			i, j := g.IntN(n), g.IntN(n)
			some[i], some[j] = some[j], some[i]
		}
		if n := len(some); n > 0 && g.IntN(20) == 0 {
			some = append(some, some[g.IntN(n)])
		}
		text := []byte("{" + strings.Join(some, ",") + "}")
		var alone odata.Parser
		want, wantErr := alone.ParseEntity(text, odata.ParseOptions{})
		p.Reset()
		got, err := p.ParseEntity(text, odata.ParseOptions{})
		if !cmp.Equal(got, want, sameBits) || !cmp.Equal(err, wantErr) {
			t.Fatalf("seed %d: %s is %+v, %v, want %+v, %v", seed, text, got, err, want, wantErr)
		}
	}
}
