// Package edm is the data model of the Azure Table service: types, values,
// entities, keys, ETags, and the rules and limits for them.
//
// An [Entity] has a [Key], a Timestamp and up to 252 custom [Properties]. A
// [Value] has one of eight types. Make it with the function named after the type
// and read it with the method of that name, which also reports whether the value
// has the type. Only [Value.Text], for a String, and [Value.Bool], for a Boolean,
// have other names; [Value.String] formats any value for people:
//
//	e := edm.Entity{
//		Key:        edm.Key{Partition: "eu", Row: "0001"},
//		Properties: edm.Properties{{Name: "Total", Value: edm.Int64(42)}},
//	}
//	total, ok := e.Properties.Get("Total").Int64()
//
// [Marshal] and [Unmarshal] convert Go structs. Entities and properties marshal to
// and from the JSON of the Table protocol.
//
// The Check functions enforce the rules. A violation is an [*Error] that names
// the [Rule], the offender and the limit; errors.Is finds [ErrInvalid] in it. A
// store checks what it writes, so callers need not.
//
// Values and entities are safe for concurrent reads. Do not write one while
// another goroutine uses it.
package edm
