package store

import "github.com/tablerock-db/tablerock/edm"

// MergeProperties appends to dst the result of merging patch into old: the
// properties of old in their order, with the value of patch if patch has the name,
// then the properties that only patch has, in the order of patch. A null in patch
// changes nothing. The values share the memory of old and patch, and are valid as
// long as both.
func MergeProperties(dst edm.Properties, old edm.Row, patch edm.Properties) edm.Properties {
	start := len(dst)
	for i := range old.Len() {
		name, v := old.At(i)
		dst = append(dst, edm.Property{Name: name, Value: v})
	}
	end := len(dst)
	// A patch often repeats all properties in order, so search for the next name
	// after the last one found.
	hint := 0
	for i := range patch {
		p := &patch[i]
		if p.Value.IsNull() {
			continue
		}
		kept := dst[start:end]
		at := indexFrom(kept, p.Name, hint)
		if at < 0 {
			dst = append(dst, *p)
			continue
		}
		kept[at].Value = p.Value
		hint = at + 1
	}
	return dst
}

// indexFrom returns the index of the property called name, or -1. It searches
// props[hint:] first.
func indexFrom(props edm.Properties, name string, hint int) int {
	for i := hint; i < len(props); i++ {
		if props[i].Name == name {
			return i
		}
	}
	for i := range props[:hint] {
		if props[i].Name == name {
			return i
		}
	}
	return -1
}
