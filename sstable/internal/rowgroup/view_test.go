package rowgroup

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
)

// TestKeepLength compares KeepLength with the lengths of the values: groups of one row up to
// 300, one to four columns, values of one length (vectors of width 0), heads as read and
// arranged.
func TestKeepLength(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN([]int{3, 300}[seed%2])
		var rows []string
		for i := range n {
			rows = append(rows, fmt.Sprintf("%04d", i))
		}
		limits, fixed := make([]int, 1+r.IntN(4)), make([]bool, 4)
		for i := range limits {
			limits[i], fixed[i] = []int{1, 3, 40, 300}[r.IntN(4)], r.IntN(3) == 0
		}
		lengths := make([][]int, n)
		h, _ := build(t, userKeys([]string{"p"}, rows), func(row int) (props edm.Properties) {
			lengths[row] = make([]int, len(limits))
			for i, limit := range limits {
				l := r.IntN(limit)
				if fixed[i] {
					l = limit - 1
				}
				b := make([]byte, l)
				for j := range b {
					b[j] = byte(r.Uint32())
				}
				lengths[row][i] = l
				props = append(props, edm.Property{Name: fmt.Sprint("P", i), Value: edm.Binary(b)})
			}
			return props
		})
		for _, arranged := range []bool{false, true} {
			if arranged {
				h.Arrange(nil)
			}
			for i, limit := range limits {
				c := h.Column(i)
				if c.Kind != Heap {
					continue
				}
				for l := range limit + 1 {
					var set, want predicate.Bits
					for row := range n {
						if r.IntN(3) > 0 {
							set.Add(row)
							if lengths[row][i] == l {
								want.Add(row)
							}
						}
					}
					if c.KeepLength(l, &set); set != want {
						t.Fatalf("seed %d, arranged %v, column %d, length %d: got %v, want %v", seed, arranged, i, l, set, want)
					}
				}
			}
		}
	}
}
