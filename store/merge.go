package store

import "github.com/tablerock-db/tablerock/edm"

// MergeProperties appends to dst what a merge of patch into old stores: the
// properties of old in their order, with the type and value of patch where
// patch has one of the same name, then the properties that only patch has, in
// patch's order. A null in patch leaves the property as it is. The values share
// the bytes of old and patch and live as long as both.
func MergeProperties(dst edm.Properties, old edm.Row, patch edm.Properties) edm.Properties {
	start := len(dst)
	for i := range old.Len() {
		name, v := old.At(i)
		dst = append(dst, edm.Property{Name: name, Value: v})
	}
	end := len(dst)
	// Patches that repeat the whole entity are common, so the search for the
	// next name starts behind the place of the last one found.
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

// indexFrom returns the index of the property called name, looking at
// props[hint:] first, or -1.
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
