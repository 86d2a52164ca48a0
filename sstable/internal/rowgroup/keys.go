package rowgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// keys is the part of a head that holds the user keys; head.go has the bytes.
type keys struct {
	rows     int
	common   []byte
	dir      []byte // stretches
	prefixes []byte
	suffixes []byte // with eight bytes behind it
	width    int    // of a suffix in suffixes
	ends     []byte // of the rests; nil when all have restLen
	restLen  int
	rests    []byte
	versions bool // some user key has several rows
}

// EndOfKey ends every user key.
const EndOfKey = 1

// decode reads the keys; c stands behind the counts.
func (k *keys) decode(c *cursor, stretches int) error {
	k.width = int(c.u8())
	flags := c.u8()
	common, restLen, prefixes, zero := c.u16(), c.u16(), int(c.u32()), c.u32()
	c.u64() // the largest sequence, for the head
	if k.width > 8 || flags&^flagVersions != 0 || zero != 0 {
		return errors.New("impossible key layout")
	}
	k.versions = flags&flagVersions != 0
	k.common = c.bytes(common)
	k.dir = c.bytes(stretches * stretchBytes)
	k.prefixes = c.bytes(prefixes)
	from := c.off
	c.bytes(k.rows * k.width)
	if c.bad {
		return errors.New("keys end early")
	}
	k.suffixes = c.p[from : c.off+SumBytes]
	k.ends, k.restLen = nil, restLen
	total := restLen * k.rows
	if restLen == restsVary {
		k.ends = c.bytes(2 * k.rows)
		if c.bad {
			return errors.New("keys end early")
		}
		total = le16(k.ends, k.rows-1)
	}
	k.rests = c.bytes(total)
	if c.bad {
		return errors.New("keys end early")
	}
	return k.check(stretches)
}

// check checks the places within the directory and the rests.
func (k *keys) check(stretches int) error {
	row, end := -1, 0
	for i := range stretches {
		first, partition, e := k.first(i), le16(k.dir, 3*i+1), le16(k.dir, 3*i+2)
		if first <= row || i == 0 && first != 0 || first >= k.rows || e < end || partition > len(k.common)+e-end || partition < 5 {
			return errors.New("impossible stretch of keys")
		}
		row, end = first, e
	}
	if end != len(k.prefixes) {
		return errors.New("prefixes of another length")
	}
	if k.ends == nil {
		return nil
	}
	last := 0
	for row := range k.rows {
		end := le16(k.ends, row)
		if end < last {
			return errors.New("impossible rest of a key")
		}
		last = end
	}
	return nil
}

func (k *keys) stretches() int { return len(k.dir) / stretchBytes }

// first returns the first row of stretch i.
func (k *keys) first(i int) int { return le16(k.dir, 3*i) }

// end returns the row after the last of stretch i.
func (k *keys) end(i int) int {
	if (i+1)*stretchBytes < len(k.dir) {
		return k.first(i + 1)
	}
	return k.rows
}

// prefix returns what the keys of stretch i have in common beyond common.
func (k *keys) prefix(i int) []byte {
	from := 0
	if i > 0 {
		from = le16(k.dir, 3*i-1)
	}
	return k.prefixes[from:le16(k.dir, 3*i+2)]
}

// stretchOf returns the stretch of a row.
func (k *keys) stretchOf(row int) int {
	lo, hi := 1, k.stretches()
	for lo < hi {
		if m := (lo + hi) / 2; k.first(m) <= row {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// suffix returns the array's part of a row's suffix, filled with zeros to eight
// bytes.
func (k *keys) suffix(row int) uint64 {
	return binary.BigEndian.Uint64(k.suffixes[row*k.width:]) &^ (^uint64(0) >> (8 * k.width))
}

func (k *keys) rest(row int) []byte {
	if k.ends == nil {
		return k.rests[row*k.restLen : (row+1)*k.restLen]
	}
	from := 0
	if row > 0 {
		from = le16(k.ends, row-1)
	}
	return k.rests[from:le16(k.ends, row)]
}

// Same reports whether a row has the user key of the row before, which is in
// the same group.
func (k *keys) Same(row int) bool {
	if !k.versions || k.suffix(row) != k.suffix(row-1) || !bytes.Equal(k.rest(row), k.rest(row-1)) {
		return false
	}
	return k.first(k.stretchOf(row)) != row
}

// AppendKey appends the user key of a row.
func (k *keys) AppendKey(dst []byte, row int) []byte {
	dst, _, _ = k.AppendPrefix(dst, row)
	return k.AppendSuffix(dst, row)
}

// AppendPrefix appends what the user keys of the rows from..to-1, row among
// them, have in common.
func (k *keys) AppendPrefix(dst []byte, row int) (out []byte, from, to int) {
	s := k.stretchOf(row)
	return append(append(dst, k.common...), k.prefix(s)...), k.first(s), k.end(s)
}

// PartitionLen returns how much of the user key of a row belongs to its
// partition, as codec.PartitionLen does.
func (k *keys) PartitionLen(row int) int { return le16(k.dir, 3*k.stretchOf(row)+1) }

// Versions reports whether some user key has several rows.
func (k *keys) Versions() bool { return k.versions }

// AppendSuffix appends what the user key of a row has beyond its prefix.
func (k *keys) AppendSuffix(dst []byte, row int) []byte {
	if s := k.suffix(row); s != 0 {
		n := len(dst) + 8 - bits.TrailingZeros64(s)/8
		dst = binary.BigEndian.AppendUint64(dst, s)[:n]
		dst = append(dst, k.rest(row)...)
	}
	return append(dst, EndOfKey)
}

// Seek returns the first row whose user key is not less than key, and whether
// it is equal. Key is a user key or a bound made by package codec.
func (k *keys) Seek(key []byte) (row int, equal bool) {
	if !bytes.HasPrefix(key, k.common) {
		if bytes.Compare(key, k.common) < 0 {
			return 0, false
		}
		return k.rows, false
	}
	key = key[len(k.common):]
	lo, hi := 0, k.stretches()
	for lo < hi {
		if m := (lo + hi) / 2; bytes.Compare(k.prefix(m), key) <= 0 {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return 0, false
	}
	// No prefix begins another, since each contains the end of a PartitionKey.
	prefix := k.prefix(lo - 1)
	if !bytes.HasPrefix(key, prefix) {
		return k.end(lo - 1), false
	}
	return k.seekSuffix(k.first(lo-1), k.end(lo-1), key[len(prefix):])
}

// seekSuffix is Seek among the rows of a stretch.
func (k *keys) seekSuffix(lo, hi int, key []byte) (row int, equal bool) {
	whole := len(key) > 0 && key[len(key)-1] == EndOfKey
	if whole {
		key = key[:len(key)-1]
	}
	var want uint64
	for i, b := range key[:min(len(key), k.width)] {
		want |= uint64(b) << (56 - 8*i)
	}
	rest := key[min(len(key), k.width):]
	end := hi
	for lo < hi {
		m := (lo + hi) / 2
		s := k.suffix(m)
		less := s < want
		if s == want {
			c := bytes.Compare(k.rest(m), rest)
			// Only a whole key can be equal: a bound lies before what it begins.
			less = c < 0
		}
		if less {
			lo = m + 1
		} else {
			hi = m
		}
	}
	equal = whole && lo < end && k.suffix(lo) == want && bytes.Equal(k.rest(lo), rest)
	return lo, equal
}

// CommonLen returns how many bytes a and b begin with in common.
func CommonLen(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// appendKeys appends the head up to the end of the keys.
func (g *Builder) appendKeys(dst []byte) []byte {
	n, stretches := g.Rows(), len(g.starts)
	prefix := func(i int) []byte { // what the keys of stretch i have in common
		first, last := g.key(g.starts[i].first), g.key(g.stretchEnd(i)-1)
		return first[:CommonLen(first, last)]
	}
	first := prefix(0)
	common := CommonLen(first, prefix(stretches-1))
	g.prefixes, g.ends = g.prefixes[:0], g.ends[:0]
	longest := 0
	for i := range stretches {
		p := prefix(i)
		g.prefixes = append(g.prefixes, p[common:]...)
		g.ends = append(g.ends, uint64(len(g.prefixes)))
		for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
			longest = max(longest, len(g.key(row))-len(p))
		}
	}
	width := min(longest, 8)
	flags := byte(0)
	if g.versions {
		flags = flagVersions
	}
	for _, v := range []int{n, stretches, len(g.units), len(g.slots), len(g.extents)} {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
	}
	dst = append(dst, byte(width), flags)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(common))
	restAt := len(dst)
	dst = binary.LittleEndian.AppendUint16(dst, 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(g.prefixes)))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, g.maxSeq)
	dst = append(dst, first[:common]...)
	for i, s := range g.starts {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.first))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.partition))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.ends[i]))
	}
	dst = append(dst, g.prefixes...)
	return g.appendSuffixes(dst, common, width, restAt)
}

func (g *Builder) stretchEnd(i int) int {
	if i+1 < len(g.starts) {
		return g.starts[i+1].first
	}
	return g.Rows()
}

// appendSuffixes appends the suffixes' array and their rests. The length of the
// rests goes to dst[restAt].
func (g *Builder) appendSuffixes(dst []byte, common, width, restAt int) []byte {
	n := g.Rows()
	array := len(dst)
	dst = append(dst, make([]byte, n*width)...)
	g.rests = g.rests[:0]
	from := uint64(0)
	restLen := -1
	for i := range g.starts {
		skip := common + int(g.ends[i]-from)
		from = g.ends[i]
		for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
			suffix := g.key(row)[skip:]
			took := copy(dst[array+row*width:array+(row+1)*width], suffix)
			g.rests = append(g.rests, suffix[took:]...)
			switch l := len(suffix) - took; {
			case restLen < 0:
				restLen = l
			case restLen != l:
				restLen = restsVary
			}
		}
	}
	binary.LittleEndian.PutUint16(dst[restAt:], uint16(restLen))
	if restLen == restsVary {
		end := 0
		from = 0
		for i := range g.starts {
			skip := common + int(g.ends[i]-from)
			from = g.ends[i]
			for row := g.starts[i].first; row < g.stretchEnd(i); row++ {
				end += max(len(g.key(row))-skip-width, 0)
				dst = binary.LittleEndian.AppendUint16(dst, uint16(end))
			}
		}
	}
	return append(dst, g.rests...)
}
