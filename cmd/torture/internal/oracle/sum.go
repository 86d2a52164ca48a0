package oracle

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/store"
)

// The sum of a state is the sum of the hashes of its tables, metadata and entities. mix makes
// the bits of each hash independent. Missing metadata has the hash 0.

func mix(b []byte) uint64 {
	x := xxhash.Sum64(b) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func appendText(b []byte, s string) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func sumTable(info store.TableInfo) uint64 {
	return mix(binary.AppendVarint(appendText([]byte{1}, info.Name), int64(info.Created)))
}

func sumMeta(table string, meta []byte) uint64 {
	if len(meta) == 0 {
		return 0
	}
	return mix(append(appendText([]byte{2}, table), meta...))
}

func sumEntity(table string, e *edm.Entity) uint64 {
	var s Summer
	return s.Row(table, e.View())
}

// Summer hashes rows. It reuses its buffers.
type Summer struct{ buf, text []byte }

// Row returns the hash of a row of the table with a folded name.
func (s *Summer) Row(table string, row edm.Row) uint64 {
	b := appendText(append(s.buf[:0], 3), table)
	s.text = row.AppendPartition(s.text[:0])
	b = append(binary.AppendUvarint(b, uint64(len(s.text))), s.text...)
	s.text = row.AppendRow(s.text[:0])
	b = append(binary.AppendUvarint(b, uint64(len(s.text))), s.text...)
	b = binary.AppendVarint(b, int64(row.Timestamp()))
	for i := range row.Len() {
		name, v := row.At(i)
		b = append(appendText(b, name), byte(v.Type()))
		b = binary.LittleEndian.AppendUint64(b, v.Word())
		b = binary.LittleEndian.AppendUint64(b, v.Word2())
		b = append(binary.AppendUvarint(b, uint64(len(v.Bytes()))), v.Bytes()...)
	}
	s.buf = b
	return mix(b)
}
