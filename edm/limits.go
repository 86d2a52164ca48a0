package edm

// The limits of the data model. The service counts UTF-16 code units.
const (
	MaxKeyUnits    = 1024                         // code units in a PartitionKey, and in a RowKey
	MaxProperties  = 252                          // custom properties that are not null
	MaxNameUnits   = 255                          // code units in a property's name
	MaxStringUnits = 32768                        // code units in a String
	MaxBinaryBytes = 65536                        // bytes in a Binary
	MaxEntityBytes = 1 << 20                      // bytes of an entity by the service's formula
	MaxBatchOps    = 100                          // operations in a batch
	MaxBatchBytes  = MaxBatchOps * MaxEntityBytes // bytes of the operations in a batch, as given
)

const (
	entityOverhead   = 4 // in an entity's size; it includes the Timestamp
	propertyOverhead = 8 // for each custom property
	lengthOverhead   = 4 // for each String and Binary
)

// EntitySize returns the size of an entity by the service's formula, in bytes:
// 4, twice the code units of both keys, and for each property that is not null
// 8, twice the code units of its name, and its value. It is the size that
// MaxEntityBytes limits, and not the size on disk.
func EntitySize(k Key, p Properties) int {
	n := entityOverhead + 2*(UTF16Len(k.Partition)+UTF16Len(k.Row))
	for i := range p {
		n += propertySize(p[i].Name, p[i].Value)
	}
	return n
}

func propertySize(name string, v Value) int {
	n := propertyOverhead + 2*UTF16Len(name)
	switch v.Type() {
	case TypeString:
		return n + lengthOverhead + 2*UTF16Len(v.bytes)
	case TypeBinary:
		return n + lengthOverhead + len(v.bytes)
	case TypeBoolean:
		return n + 1
	case TypeInt32:
		return n + 4
	case TypeInt64, TypeDouble, TypeDateTime:
		return n + 8
	case TypeGuid:
		return n + 16
	}
	return 0
}

// sizeBound returns an upper bound for EntitySize without counting code units. A
// text has at most as many code units as bytes.
func sizeBound(k Key, p Properties) int {
	n := entityOverhead + 2*(len(k.Partition)+len(k.Row))
	for i := range p {
		n += propertyOverhead + 2*len(p[i].Name) + lengthOverhead + 16 + 2*len(p[i].Value.bytes)
	}
	return n
}
