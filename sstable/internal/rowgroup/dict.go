package rowgroup

import "github.com/tablerock-db/tablerock/sstable/internal/fields"

func (c *column) decodeDict(cur *fields.Cursor, rows int) bool {
	n, size := int(cur.U8())+1, cur.U16()
	c.dict = uint32(cur.Off)
	ends := cur.Bytes(2 * n)
	c.bytes = uint32(cur.Off)
	cur.Bytes(size)
	c.a = readVector(cur, rows)
	if cur.Bad {
		return false
	}
	data := withSum(cur)
	last := 0
	for i := range n {
		end := le16(ends, i)
		if end < last {
			return false
		}
		last = end
	}
	if last != size {
		return false
	}
	for i := range rows {
		if c.a.at(data, i) >= uint64(n) {
			return false
		}
	}
	return true
}

// entry returns an entry of the dictionary.
func (c *column) entry(data []byte, code int) []byte {
	ends, from := data[c.dict:], 0
	if code > 0 {
		from = le16(ends, code-1)
	}
	texts, to := data[c.bytes:], le16(ends, code)
	return texts[from:to:to]
}
