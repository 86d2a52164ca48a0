package edm_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/bench"
	"github.com/tablerock-db/tablerock/edm"
)

// person has twelve properties of all eight types.
type person struct {
	Region                 string `table:",pk"`
	Number                 string `table:",rk"`
	Name, Mail, City, Note string
	Age                    int32
	Visits                 int64
	Score                  float64
	Active                 bool
	Seen                   time.Time
	ID                     edm.GUID
	Photo                  []byte
	Rating                 int32
	Changed                time.Time `table:",timestamp"`
}

func onePerson() person {
	return person{
		Region: "eu", Number: "0001",
		Name: "Ada Lovelace", Mail: "ada@example.org", City: "London", Note: "wrote the first program",
		Age: 36, Visits: 1 << 40, Score: 0.5, Active: true, Seen: time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC),
		ID: edm.GUID{1, 2, 3}, Photo: make([]byte, 32), Rating: 1, Changed: time.Date(2024, 2, 3, 4, 5, 7, 0, time.UTC),
	}
}

// entity is Marshal by hand.
func (p *person) entity() edm.Entity {
	return edm.Entity{Key: edm.Key{Partition: p.Region, Row: p.Number}, Timestamp: edm.TicksOf(p.Changed), Properties: edm.Properties{
		{Name: "Name", Value: edm.String(p.Name)},
		{Name: "Mail", Value: edm.String(p.Mail)},
		{Name: "City", Value: edm.String(p.City)},
		{Name: "Note", Value: edm.String(p.Note)},
		{Name: "Age", Value: edm.Int32(p.Age)},
		{Name: "Visits", Value: edm.Int64(p.Visits)},
		{Name: "Score", Value: edm.Double(p.Score)},
		{Name: "Active", Value: edm.Boolean(p.Active)},
		{Name: "Seen", Value: edm.DateTime(edm.TicksOf(p.Seen))},
		{Name: "ID", Value: edm.Guid(p.ID)},
		{Name: "Photo", Value: edm.Binary(p.Photo)},
		{Name: "Rating", Value: edm.Int32(p.Rating)},
	}}
}

// set is Unmarshal by hand.
func (p *person) set(r edm.Row) error {
	k := r.Key()
	p.Region, p.Number, p.Changed = k.Partition, k.Row, r.Timestamp().Time()
	for i := range r.Len() {
		name, v := r.At(i)
		ok := true
		switch name {
		case "Name":
			p.Name, ok = v.Text()
		case "Mail":
			p.Mail, ok = v.Text()
		case "City":
			p.City, ok = v.Text()
		case "Note":
			p.Note, ok = v.Text()
		case "Age":
			p.Age, ok = v.Int32()
		case "Visits":
			p.Visits, ok = v.Int64()
		case "Score":
			p.Score, ok = v.Double()
		case "Active":
			p.Active, ok = v.Bool()
		case "Seen":
			var t edm.Ticks
			t, ok = v.DateTime()
			p.Seen = t.Time()
		case "ID":
			p.ID, ok = v.Guid()
		case "Photo":
			p.Photo, ok = v.Clone().Binary()
		case "Rating":
			p.Rating, ok = v.Int32()
		}
		if !ok {
			return fmt.Errorf("%s has the type %v", name, v.Type())
		}
	}
	return nil
}

func BenchmarkMarshal(b *testing.B) {
	p := onePerson()
	for _, c := range []struct {
		name    string
		marshal func() (edm.Entity, error)
	}{
		{"by=hand", func() (edm.Entity, error) { return p.entity(), nil }},
		{"by=reflection", func() (edm.Entity, error) { return edm.Marshal(&p) }},
		{"by=reflection/given=value", func() (edm.Entity, error) { return edm.Marshal(p) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			cpu := bench.CPUTime()
			for b.Loop() {
				if e, err := c.marshal(); err != nil || len(e.Properties) != 12 {
					b.Fatal(e, err)
				}
			}
			b.ReportMetric(float64(bench.CPUTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	p := onePerson()
	e := p.entity()
	r := e.View()
	for _, c := range []struct {
		name string
		set  func(p *person) error
	}{
		{"by=hand", func(p *person) error { return p.set(r) }},
		{"by=reflection", func(p *person) error { return edm.Unmarshal(r, p) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			cpu := bench.CPUTime()
			for b.Loop() {
				var got person
				if err := c.set(&got); err != nil || got.Rating != 1 {
					b.Fatal(got, err)
				}
			}
			b.ReportMetric(float64(bench.CPUTime()-cpu)/float64(b.N), "cpu-ns/op")
		})
	}
}
