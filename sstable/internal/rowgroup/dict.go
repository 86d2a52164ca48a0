package rowgroup

func (c *column) decodeDict(cur *cursor, rows int) bool {
	n, size := int(cur.u8())+1, cur.u16()
	c.dict = uint32(cur.off)
	ends := cur.bytes(2 * n)
	c.bytes = uint32(cur.off)
	cur.bytes(size)
	c.a = cur.vector(rows)
	if cur.bad {
		return false
	}
	data := cur.data()
	last := 0
	for i := range n {
		end := le16(ends, i)
		if end < last || end > size {
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
