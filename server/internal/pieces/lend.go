package pieces

import "sync"

// MaxKept is the most memory of one buffer that is kept for later requests.
const MaxKept = 256 << 10

// Kept returns b, emptied, for a later request, or nil if it holds too much.
func Kept(b []byte) []byte {
	if cap(b) > MaxKept {
		return nil
	}
	return b[:0]
}

var lent = sync.Pool{New: func() any {
	b := New()
	return &b
}}

// Borrow returns memory for an answer, and what GiveBack knows it by.
func Borrow() (loan *[]byte, b []byte) {
	loan = lent.Get().(*[]byte)
	return loan, (*loan)[:0]
}

// GiveBack ends a loan, nil for none, with the memory that it has become.
func GiveBack(loan *[]byte, b []byte) {
	if loan != nil {
		*loan = Kept(b)
		lent.Put(loan)
	}
}
