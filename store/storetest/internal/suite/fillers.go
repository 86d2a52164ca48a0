package suite

import (
	"fmt"

	"github.com/tablerock-db/tablerock/edm"
)

// Several returns n properties of one byte each, whose names begin with prefix.
func Several(prefix string, n int) edm.Properties {
	p := make(edm.Properties, n)
	for i := range p {
		p[i] = edm.Property{Name: fmt.Sprintf("%s%03d", prefix, i), Value: edm.Boolean(true)}
	}
	return p
}

// Filling returns properties that count n bytes in the size of an entity. The
// least that one counts is 22.
func Filling(n int) edm.Properties {
	var p edm.Properties
	for i := 0; n > 0; i++ {
		name := fmt.Sprintf("F%03d", i)
		over := edm.PropertySize(name, edm.Binary(nil))
		size := min(n-over, edm.MaxBinaryBytes-100)
		if rest := n - over - size; rest > 0 && rest < over {
			size -= over
		}
		p = append(p, edm.Property{Name: name, Value: edm.Binary(make([]byte, size))})
		n -= over + size
	}
	return p
}
