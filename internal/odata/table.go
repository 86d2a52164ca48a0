package odata

import (
	"errors"
	"slices"
)

// tableName is the only member of a table.
const tableName = "TableName"

// AppendTable appends the table called name as a JSON object without white space.
func AppendTable(dst []byte, name string, o Options) []byte {
	dst = appendMetadata(append(dst, '{'), &o)
	if o.Level >= Full {
		var from int
		dst, from = appendTypeAndBase(dst, "Tables", &o)
		dst = AppendTableLink(dst, name)
		to := len(dst)
		dst = append(dst, `","odata.editLink":"`...)
		dst = append(dst, dst[from:to]...)
		dst = append(dst, '"', ',')
	}
	if o.Select == nil || slices.Contains(o.Select, tableName) {
		dst = append(dst, `"TableName":`...)
		dst = append(AppendText(dst, name, o.ASCII), ',')
	}
	for _, other := range o.Select {
		if other != tableName {
			dst = AppendText(dst, other, o.ASCII)
			dst = append(dst, ":null,"...)
		}
	}
	return endObject(dst)
}

// ParseTable parses the name of a table from its JSON. The only other members may be
// metadata or null. ParseTable does not check the name, except that it is not empty.
// Every error is an *Error; its kind is MissingName if the name is absent or empty.
func ParseTable(src []byte) (name string, err error) {
	e, err := ParseEntity(src, ParseOptions{PartitionKey: tableName, RowKey: tableName})
	if refusal := (*Error)(nil); errors.As(err, &refusal) && refusal.Kind == MissingKey {
		refusal.Kind = MissingName
	}
	switch {
	case err != nil:
		return "", err
	case e.Key.Partition == "":
		return "", &Error{Kind: MissingName, Member: tableName, What: "it is empty"}
	case len(e.Properties) > 0:
		return "", &Error{Kind: BadValue, Member: shorten([]byte(e.Properties[0].Name)), What: "a table has no such member"}
	}
	return e.Key.Partition, nil
}
