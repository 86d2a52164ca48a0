package explorer

import (
	"unicode/utf8"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
)

// typeNames has the types by their names.
var typeNames = func() map[string]edm.Type {
	names := map[string]edm.Type{}
	for t := edm.TypeString; t <= edm.TypeGuid; t++ {
		names[t.String()] = t
	}
	return names
}()

// entityOf returns a row, with values of at most cell bytes, 0 for no limit.
func entityOf(row edm.Row, cell int) Entity {
	key := row.Key()
	e := Entity{
		PartitionKey: key.Partition, RowKey: key.Row, Timestamp: row.Timestamp().String(), ETag: string(row.Timestamp().ETag()),
		Properties: make([]Property, row.Len()),
	}
	for i := range e.Properties {
		name, v := row.At(i)
		e.Properties[i] = propertyOf(name, v, cell)
	}
	return e
}

// bytes returns about how long the JSON of e is.
func (e *Entity) bytes() int {
	const perProperty = 64 // the names of the members, and the type
	n := len(e.PartitionKey) + len(e.RowKey)
	for i := range e.Properties {
		n += perProperty + len(e.Properties[i].Name) + len(e.Properties[i].Value)
	}
	return n
}

func propertyOf(name string, v edm.Value, cell int) Property {
	p := Property{Name: name, Type: v.Type().String()}
	if n := len(v.Bytes()); cell > 0 && n > cell && v.Type() != edm.TypeGuid {
		p.Cut = n
		b := v.Bytes()[:cell/3*3] // base64 of whole groups is the start of that of the value
		if v.Type() == edm.TypeBinary {
			v = edm.Binary(b)
		} else {
			for len(b) > 0 && !utf8.Valid(b) {
				b = b[:len(b)-1] // at most three times: only the last character is incomplete
			}
			v = edm.StringBytes(b)
		}
	}
	p.Value = string(odata.AppendValue(nil, v))
	return p
}

// parse returns an entity of a request. A property without a type is null, which a write
// ignores. The store checks the rest.
func (e *Entity) parse() (edm.Entity, error) {
	of := edm.Entity{Key: edm.Key{Partition: e.PartitionKey, Row: e.RowKey}}
	for _, p := range e.Properties {
		if p.Cut > 0 {
			return of, badInput("The value of property " + p.Name + " is cut: read the whole entity before you write it.")
		}
		v, err := parseValue(p.Name, p.Type, p.Value)
		if err != nil {
			return of, err
		}
		of.Properties = append(of.Properties, edm.Property{Name: p.Name, Value: v})
	}
	return of, nil
}

// parseValue parses the text of a property. Its errors are those of the same value in the
// JSON of the protocol.
func parseValue(name, typeName, text string) (edm.Value, error) {
	t, ok := typeNames[typeName]
	if !ok {
		return edm.Value{}, badInput("Property " + name + " has no type that exists: " + typeName)
	}
	if t == edm.TypeString {
		return edm.String(text), nil
	}
	v, err := odata.ParseValue(t, []byte(text))
	if err != nil {
		return v, odata.ValueError(name, []byte(text), err)
	}
	return v, nil
}
