package store

import (
	"slices"

	"github.com/tablerock-db/tablerock/edm"
)

// MergeProperties appends to dst the result of merging patch into old: the
// properties of both, with the value of patch if patch has the name, in the order of
// the names by UTF-16 code units. A null in patch changes nothing. If old has no
// properties, the result is what a replace with patch stores. The values share the
// memory of old and patch, and are valid as long as both.
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
	sortByName(dst[start:])
	return dst
}

// sortByName sorts props, which usually are in order.
func sortByName(props edm.Properties) {
	for i := 1; i < len(props); i++ {
		if edm.Compare(props[i-1].Name, props[i].Name) > 0 {
			slices.SortFunc(props, func(a, b edm.Property) int { return edm.Compare(a.Name, b.Name) })
			return
		}
	}
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
