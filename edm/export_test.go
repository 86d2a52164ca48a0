package edm

// CheckPropertyName checks the name of one property.
func CheckPropertyName(name string) error { return checkPropertyName(name) }

// ParseType returns the type with a name.
func ParseType(s string) (Type, bool) { return parseType(s) }
