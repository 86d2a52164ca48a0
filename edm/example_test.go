package edm_test

import (
	"fmt"
	"log"
	"time"

	"github.com/tablerock-db/tablerock/edm"
)

type reading struct {
	Sensor string    `table:",pk"`
	Number string    `table:",rk"`
	At     time.Time `table:"Time"`
	Value  float64
	Unit   *string // no property if nil
	Flags  uint8   `table:",omitempty"`
}

// A struct and its entity.
func ExampleMarshal() {
	unit := "°C"
	e, err := edm.Marshal(reading{"roof", "0001", time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC), 21.5, &unit, 0})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range e.Properties {
		fmt.Println(p.Name, p.Value.Type(), p.Value)
	}
	// Output:
	// Time Edm.DateTime 2024-02-03T04:05:06Z
	// Value Edm.Double 21.5
	// Unit Edm.String °C
}

// An entity that another program wrote.
func ExampleUnmarshal() {
	e := edm.Entity{Key: edm.Key{Partition: "roof", Row: "0002"}, Properties: edm.Properties{
		{Name: "Value", Value: edm.Int32(22)},
		{Name: "Flags", Value: edm.Int64(300)},
	}}
	var r reading
	err := edm.Unmarshal(e.View(), &r)
	fmt.Println(r.Sensor, r.Value)
	fmt.Println(err)
	// Output:
	// roof 22
	// entity with PartitionKey "roof" and RowKey "0002": field edm_test.reading.Flags (uint8, Edm.Int32): the field cannot hold 300
}
