package edm

import (
	"fmt"
	"unicode/utf8"
)

// CheckEntity returns the first *Error of e. It checks, in this order, the key;
// the names of the properties; whether a name is repeated; the values; the number
// of properties; the size of the entity. A property that is null does not count,
// but its name must be legal and unique. CheckEntity allocates only if it fails,
// or if e has more than 256 properties.
func CheckEntity(e *Entity) error {
	if err := CheckKey(e.Key); err != nil {
		return err
	}
	if err := CheckProperties(e.Properties); err != nil {
		return err
	}
	return CheckTotals(e.Key, e.Properties)
}

// CheckProperties returns the first *Error of p by itself: of the names, then of
// repeated names, then of the values. See CheckTotals for the limits of the whole
// entity.
func CheckProperties(p Properties) error {
	for i := range p {
		if err := checkPropertyName(p[i].Name); err != nil {
			return err
		}
	}
	if err := checkDuplicates(p); err != nil {
		return err
	}
	return CheckValues(p)
}

// CheckTotals returns an *Error if p has more than MaxProperties properties that
// are not null, or if the entity of k and p is larger than MaxEntityBytes. k and
// p must be valid by themselves.
func CheckTotals(k Key, p Properties) error {
	n := len(p)
	if n > MaxProperties {
		n = 0
		for i := range p {
			if !p[i].Value.IsNull() {
				n++
			}
		}
	}
	if n > MaxProperties {
		return &Error{RulePropertyCount, "", MaxProperties, fmt.Sprintf("%d properties", n)}
	}
	if sizeBound(k, p) <= MaxEntityBytes {
		return nil
	}
	if n := EntitySize(k, p); n > MaxEntityBytes {
		return &Error{RuleEntitySize, "", MaxEntityBytes, fmt.Sprintf("an entity of %d bytes", n)}
	}
	return nil
}

// CheckValues returns an *Error, which names the property, for the first value of
// p that cannot be stored: a String must be valid UTF-8 of at most MaxStringUnits
// code units, a Binary has at most MaxBinaryBytes, a Guid has 16 bytes, and the others
// must be in the range of their type. A null passes. The names are not checked.
func CheckValues(p Properties) error {
	for i := range p {
		v := &p[i].Value
		ok := false
		switch v.Type() {
		case TypeString:
			ok = len(v.bytes) <= MaxStringUnits && utf8.Valid(v.bytes)
		case TypeBinary:
			ok = len(v.bytes) <= MaxBinaryBytes
		case TypeGuid:
			ok = len(v.bytes) == len(GUID{})
		case TypeInt64, TypeDouble:
			ok = true
		}
		if ok {
			continue
		}
		if err := checkValue(p[i].Name, *v); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(name string, v Value) error {
	switch v.Type() {
	case TypeString:
		return checkString(name, v.bytes)
	case TypeBinary:
		if n := len(v.bytes); n > MaxBinaryBytes {
			return &Error{RuleValueSize, name, MaxBinaryBytes, fmt.Sprintf("a Binary of %d bytes", n)}
		}
		return nil
	case TypeDateTime:
		if t := Ticks(v.word); !t.Valid() {
			return &Error{RuleRange, name, 0, fmt.Sprintf("a DateTime of %d ticks", t)}
		}
		return nil
	case 0, TypeInt64, TypeDouble:
		return nil
	case TypeGuid:
		if len(v.bytes) == len(GUID{}) {
			return nil
		}
	case TypeBoolean:
		if v.word <= 1 {
			return nil
		}
	case TypeInt32:
		if uint64(int64(int32(v.word))) == v.word {
			return nil
		}
	}
	return &Error{RuleRange, name, 0, fmt.Sprintf("%v with the word %#x", v.Type(), v.word)}
}

func checkString(name string, b []byte) error {
	if !utf8.Valid(b) {
		s := string(b)
		return &Error{RuleUTF8, name, 0, describeAt(s, invalidUTF8(s))}
	}
	if len(b) <= MaxStringUnits {
		return nil
	}
	if n := UTF16Len(b); n > MaxStringUnits {
		return &Error{RuleValueSize, name, MaxStringUnits, fmt.Sprintf("a String of %d code units", n)}
	}
	return nil
}

const (
	fewProperties = 4   // up to this number, comparing all pairs is fastest
	maxSlots      = 256 // above MaxProperties
)

// checkDuplicates returns an *Error for the first property whose name an earlier
// property has too, null or not. It allocates nothing for up to maxSlots
// properties.
func checkDuplicates(p Properties) error {
	i := 0
	switch {
	case len(p) <= fewProperties:
		i = duplicateOfFew(p)
	case len(p) <= maxSlots:
		i = duplicateOfMany(p)
	default:
		i = duplicateOfAny(p)
	}
	if i < 0 {
		return nil
	}
	return &Error{RulePropertyDuplicate, p[i].Name, 0, "given more than once"}
}

func duplicateOfFew(p Properties) int {
	for i := 1; i < len(p); i++ {
		for j := range i {
			if p[i].Name == p[j].Name {
				return i
			}
		}
	}
	return -1
}

// duplicateOfMany uses a hash table on the stack with two slots for each name.
func duplicateOfMany(p Properties) int {
	var slots [2 * maxSlots]uint16 // index in p plus one, or 0
	for i := range p {
		name := p[i].Name
		slot := hashName(name) % uint32(len(slots))
		for slots[slot] != 0 {
			if p[slots[slot]-1].Name == name {
				return i
			}
			slot = (slot + 1) % uint32(len(slots))
		}
		slots[slot] = uint16(i + 1)
	}
	return -1
}

// hashName is FNV-1a. If all names collide, duplicateOfMany compares all pairs.
func hashName(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h ^ h>>15
}

func duplicateOfAny(p Properties) int {
	seen := make(map[string]struct{}, len(p))
	for i := range p {
		if _, ok := seen[p[i].Name]; ok {
			return i
		}
		seen[p[i].Name] = struct{}{}
	}
	return -1
}
