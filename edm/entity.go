package edm

// Names of the three properties that every entity has.
const (
	PartitionKeyName = "PartitionKey"
	RowKeyName       = "RowKey"
	TimestampName    = "Timestamp"
)

// Key identifies an entity within its table. Keys are ordered by Partition,
// then by Row, each by UTF-16 code unit.
type Key struct {
	Partition string
	Row       string
}

// Property is a named value.
type Property struct {
	Name  string
	Value Value
}

// Properties are an entity's custom properties in the order they were given.
type Properties []Property

// Get returns the value of the property called name, or null.
func (p Properties) Get(name string) Value {
	v, _ := p.Lookup(name)
	return v
}

// Lookup returns the value of the property called name.
func (p Properties) Lookup(name string) (Value, bool) {
	for i := range p {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return Value{}, false
}

// Entity is an entity that owns its memory. In a write, Timestamp is ignored
// and a property whose value is null is as good as absent.
type Entity struct {
	Key        Key
	Timestamp  Ticks
	Properties Properties
}

// View returns e as a Row, valid as long as e does not change.
func (e *Entity) View() Row { return entityRow{e} }

// EntityOf returns a copy of r that owns its memory.
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

// Row is the read-only view of a stored entity. It is valid as long as its
// giver says, and so are the bytes of the String and Binary values it gives;
// property names are ordinary strings without that limit.
type Row interface {
	// AppendPartition appends the PartitionKey as UTF-8 to dst.
	AppendPartition(dst []byte) []byte
	// AppendRow appends the RowKey as UTF-8 to dst.
	AppendRow(dst []byte) []byte
	// Key returns a copy of the key.
	Key() Key
	// Timestamp returns the moment of the last write.
	Timestamp() Ticks
	// Len returns the number of custom properties.
	Len() int
	// At returns custom property i, 0 <= i < Len, in stored order.
	At(i int) (name string, v Value)
	// Lookup returns the custom property called name.
	Lookup(name string) (Value, bool)
}

// entityRow makes a Row of an Entity, whose fields have the names of methods.
type entityRow struct{ e *Entity }

func (r entityRow) AppendPartition(dst []byte) []byte { return append(dst, r.e.Key.Partition...) }
func (r entityRow) AppendRow(dst []byte) []byte       { return append(dst, r.e.Key.Row...) }
func (r entityRow) Key() Key                          { return r.e.Key }
func (r entityRow) Timestamp() Ticks                  { return r.e.Timestamp }
func (r entityRow) Len() int                          { return len(r.e.Properties) }
func (r entityRow) At(i int) (string, Value)          { return r.e.Properties[i].Name, r.e.Properties[i].Value }
func (r entityRow) Lookup(name string) (Value, bool)  { return r.e.Properties.Lookup(name) }
