package edm_test

import (
	"testing"

	"github.com/tablerock-db/tablerock/edm"
)

// wideValue is a Value with a field for the type.
type wideValue struct {
	typ  edm.Type
	word uint64
	_    []byte
}

// at returns a property as a Row does: by a call that is not inlined.
type at[V any] interface{ at(i int) (string, V) }

type (
	packedRow []edm.Property
	wideRow   []struct {
		name  string
		value wideValue
	}
)

//go:noinline
func (r packedRow) at(i int) (string, edm.Value) { return r[i].Name, r[i].Value }

//go:noinline
func (r wideRow) at(i int) (string, wideValue) { return r[i].name, r[i].value }

// BenchmarkValueLayout reads the type and the word of 12 values through an
// interface, once as Value and once with a field for the type.
func BenchmarkValueLayout(b *testing.B) {
	packed, wide := make(packedRow, 12), make(wideRow, 12)
	for i := range packed {
		packed[i] = edm.Property{Name: "p", Value: edm.Int64(int64(i))}
		wide[i].name, wide[i].value = "p", wideValue{typ: edm.TypeInt64, word: uint64(i)}
	}
	var sum uint64
	b.Run("type=packed", func(b *testing.B) {
		var r at[edm.Value] = packed
		for b.Loop() {
			for i := range packed {
				if _, v := r.at(i); v.Type() == edm.TypeInt64 {
					sum += v.Word()
				}
			}
		}
	})
	b.Run("type=field", func(b *testing.B) {
		var r at[wideValue] = wide
		for b.Loop() {
			for i := range wide {
				if _, v := r.at(i); v.typ == edm.TypeInt64 {
					sum += v.word
				}
			}
		}
	})
	_ = sum
}
