package edm

// The names of the three properties that every entity has.
const (
	PartitionKeyName = "PartitionKey"
	RowKeyName       = "RowKey"
	TimestampName    = "Timestamp"
)

// Key identifies an entity within its table. Keys are ordered by Partition,
// then by Row, each by UTF-16 code unit. A struct that embeds a Key has both keys
// for [Marshal].
type Key struct {
	Partition string `table:",pk"`
	Row       string `table:",rk"`
}

// Property is a named value.
type Property struct {
	Name  string
	Value Value
}

// Properties are the custom properties of an entity, in the order in which they
// were added.
type Properties []Property

// Get returns the value of the property called name, or null if there is none.
func (p Properties) Get(name string) Value {
	v, _ := p.Lookup(name)
	return v
}

// Lookup returns the value of the property called name, and whether there is one.
func (p Properties) Lookup(name string) (Value, bool) {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return Value{}, false
}

// Entity is an entity that owns its memory. A write ignores Timestamp, which the
// store assigns, and treats a property whose value is null as absent.
type Entity struct {
	Key        Key
	Timestamp  Ticks
	Properties Properties
}

// View returns e as a Row. It is valid until e changes.
func (e *Entity) View() Row { return entityRow{e} }

// EntityOf returns a copy of r. The copy owns its memory.
func EntityOf(r Row) Entity {
	e := Entity{Key: r.Key(), Timestamp: r.Timestamp()}
	if n := r.Len(); n > 0 {
		e.Properties = make(Properties, n)
		for i := range e.Properties {
			name, v := r.At(i)
			e.Properties[i] = Property{name, v.Clone()}
		}
	}
	return e
}

// Row is a read-only view of a stored entity. The function that provides a Row
// says how long it is valid. The bytes of its String, Binary and Guid values are
// valid as long as the Row; property names have no such limit.
type Row interface {
	// AppendPartition appends the PartitionKey to dst, in UTF-8.
	AppendPartition(dst []byte) []byte
	// AppendRow appends the RowKey to dst, in UTF-8.
	AppendRow(dst []byte) []byte
	// Key returns a copy of the key.
	Key() Key
	// Timestamp returns the time of the last write.
	Timestamp() Ticks
	// Len returns the number of custom properties.
	Len() int
	// At returns custom property i in stored order, for 0 <= i < Len().
	At(i int) (name string, v Value)
	// Lookup returns the value of the custom property called name, and whether
	// there is one.
	Lookup(name string) (Value, bool)
}

// entityRow implements Row for an Entity, whose fields have the names of the
// methods.
type entityRow struct{ e *Entity }

func (r entityRow) AppendPartition(dst []byte) []byte { return append(dst, r.e.Key.Partition...) }
func (r entityRow) AppendRow(dst []byte) []byte       { return append(dst, r.e.Key.Row...) }
func (r entityRow) Key() Key                          { return r.e.Key }
func (r entityRow) Timestamp() Ticks                  { return r.e.Timestamp }
func (r entityRow) Len() int                          { return len(r.e.Properties) }
func (r entityRow) At(i int) (string, Value)          { return r.e.Properties[i].Name, r.e.Properties[i].Value }
func (r entityRow) Lookup(name string) (Value, bool)  { return r.e.Properties.Lookup(name) }
