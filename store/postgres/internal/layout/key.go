// Package layout encodes entities for the columns of the tables of store/postgres.
package layout

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
)

// maxIndexed is the length of the longest key, in bytes of p and r together, that is in
// tr_entities. An index of PostgreSQL holds tuples of up to 2,704 bytes, which have the
// id of the table and their headers too.
const maxIndexed = 2640

// Key is the key of an entity in the columns of a table.
type Key struct {
	P, R []byte // the columns p and r
	H    []byte // the column h of a key in tr_long, else nil
}

// KeyOf returns the columns of a legal key.
func KeyOf(key edm.Key) Key {
	// A key has at most 3 bytes for each code unit, mostly as many as in UTF-8.
	text := codec.AppendText(make([]byte, 0, len(key.Partition)+len(key.Row)), key.Partition)
	n := len(text)
	text = codec.AppendText(text, key.Row)
	k := Key{P: text[:n:n], R: text[n:]}
	if len(text) > maxIndexed {
		k.H = longHash(k.P, k.R)
	}
	return k
}

// longHash returns the column h of tr_long.
func longHash(p, r []byte) []byte {
	h := sha256.New()
	for _, part := range [...][]byte{p, r} {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}
