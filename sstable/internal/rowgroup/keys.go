package rowgroup

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

// keys are the decoded user keys of a head. The file format.go describes their
// encoding.
type keys struct {
	rows     int
	common   []byte
	dir      []byte // prefix groups
	prefixes []byte
	suffixes []byte // eight more bytes follow the last suffix
	width    int    // bytes of each suffix in suffixes
	ends     []byte // ends of the rests; nil if all have restLen bytes
	restLen  int
	rests    []byte
	versions bool // some user key has several rows
}

// decode reads the keys. c is at the byte after the counts.
func (k *keys) decode(c *fields.Cursor, prefixGroups int) error {
	k.width = int(c.U8())
	flags := c.U8()
	common, restLen, prefixes, zero := c.U16(), c.U16(), int(c.U32()), c.U32()
	c.U64() // the largest sequence number, which Head.Decode reads
	if k.width > 8 || flags&^flagVersions != 0 || zero != 0 {
		return errors.New("invalid key layout")
	}
	k.versions = flags&flagVersions != 0
	k.common = c.Bytes(common)
	k.dir = c.Bytes(prefixGroups * prefixGroupBytes)
	k.prefixes = c.Bytes(prefixes)
	from := c.Off
	c.Bytes(k.rows * k.width)
	k.suffixes = c.P[from : c.Off+SumBytes]
	k.ends, k.restLen = nil, restLen
	total := restLen * k.rows
	if restLen == restsVary {
		k.ends = c.Bytes(2 * k.rows)
		if c.Bad {
			return errors.New("keys end early")
		}
		total = le16(k.ends, k.rows-1)
	}
	k.rests = c.Bytes(total)
	if c.Bad {
		return errors.New("keys end early")
	}
	return k.check(prefixGroups)
}

// check checks the offsets of the prefix groups and of the rests.
func (k *keys) check(prefixGroups int) error {
	row, end := -1, 0
	for i := range prefixGroups {
		first, partition, e := k.first(i), le16(k.dir, 3*i+1), le16(k.dir, 3*i+2)
		if first <= row || i == 0 && first != 0 || first >= k.rows || e < end || partition > len(k.common)+e-end || partition <= codec.TableLen {
			return errors.New("invalid prefix group")
		}
		row, end = first, e
	}
	if end != len(k.prefixes) {
		return errors.New("prefixes and prefix groups differ in length")
	}
	if k.ends == nil {
		return nil
	}
	last := 0
	for row := range k.rows {
		end := le16(k.ends, row)
		if end < last {
			return errors.New("invalid rest of a key")
		}
		last = end
	}
	return nil
}

func (k *keys) prefixGroups() int { return len(k.dir) / prefixGroupBytes }

// first returns the first row of prefix group i.
func (k *keys) first(i int) int { return le16(k.dir, 3*i) }

// end returns the row after the last of prefix group i.
func (k *keys) end(i int) int {
	if (i+1)*prefixGroupBytes < len(k.dir) {
		return k.first(i + 1)
	}
	return k.rows
}

// prefix returns the common prefix of the keys of prefix group i, without common.
func (k *keys) prefix(i int) []byte {
	from := 0
	if i > 0 {
		from = le16(k.dir, 3*i-1)
	}
	return k.prefixes[from:le16(k.dir, 3*i+2)]
}

// prefixGroupOf returns the prefix group of a row.
func (k *keys) prefixGroupOf(row int) int {
	lo, hi := 1, k.prefixGroups()
	for lo < hi {
		if m := (lo + hi) / 2; k.first(m) <= row {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo - 1
}

// suffix returns the first eight bytes at most of a row's suffix, those in the array,
// padded with zeros.
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

// Same reports whether a row has the same user key as the row before it, which is in
// the same group.
func (k *keys) Same(row int) bool {
	if !k.versions || k.suffix(row) != k.suffix(row-1) || !bytes.Equal(k.rest(row), k.rest(row-1)) {
		return false
	}
	return k.first(k.prefixGroupOf(row)) != row
}

// AppendKey appends the user key of a row.
func (k *keys) AppendKey(dst []byte, row int) []byte {
	dst, _, _ = k.AppendPrefix(dst, row)
	return k.AppendSuffix(dst, row)
}

// AppendPrefix appends the common prefix of the user keys of rows from to to-1, which
// include row.
func (k *keys) AppendPrefix(dst []byte, row int) (out []byte, from, to int) {
	s := k.prefixGroupOf(row)
	return append(append(dst, k.common...), k.prefix(s)...), k.first(s), k.end(s)
}

// PartitionLen returns the length of the partition key in the user key of a row, as
// codec.PartitionLen does.
func (k *keys) PartitionLen(row int) int { return le16(k.dir, 3*k.prefixGroupOf(row)+1) }

// Versions reports whether some user key has several rows.
func (k *keys) Versions() bool { return k.versions }

// AppendSuffix appends the user key of a row without the prefix that AppendPrefix
// appends.
func (k *keys) AppendSuffix(dst []byte, row int) []byte {
	if s := k.suffix(row); s != 0 {
		n := len(dst) + 8 - bits.TrailingZeros64(s)/8
		dst = binary.BigEndian.AppendUint64(dst, s)[:n]
		dst = append(dst, k.rest(row)...)
	}
	return append(dst, codec.EndOfComponent)
}

// Seek returns the first row whose user key is not less than key, and whether it is
// equal. key is a user key or a bound made by package codec.
func (k *keys) Seek(key []byte) (row int, equal bool) {
	if !bytes.HasPrefix(key, k.common) {
		if bytes.Compare(key, k.common) < 0 {
			return 0, false
		}
		return k.rows, false
	}
	key = key[len(k.common):]
	lo, hi := 0, k.prefixGroups()
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
	// No prefix is a prefix of another, because each contains the end of a
	// PartitionKey.
	prefix := k.prefix(lo - 1)
	if !bytes.HasPrefix(key, prefix) {
		return k.end(lo - 1), false
	}
	return k.seekSuffix(k.first(lo-1), k.end(lo-1), key[len(prefix):])
}

// seekSuffix is Seek within a prefix group.
func (k *keys) seekSuffix(lo, hi int, key []byte) (row int, equal bool) {
	whole := len(key) > 0 && key[len(key)-1] == codec.EndOfComponent
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
			// Only a whole key can be equal: a bound sorts before the keys that it is
			// a prefix of.
			less = bytes.Compare(k.rest(m), rest) < 0
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

// appendKeys appends the head up to and including the keys.
func (g *Builder) appendKeys(dst []byte) []byte {
	n, prefixGroups := g.Rows(), len(g.prefixGroups)
	prefix := func(i int) []byte { // the common prefix of the keys of prefix group i
		first, last := g.key(g.prefixGroups[i].first), g.key(g.prefixGroupEnd(i)-1)
		return first[:codec.CommonLen(first, last)]
	}
	first := prefix(0)
	common := codec.CommonLen(first, prefix(prefixGroups-1))
	g.prefixes, g.ends = g.prefixes[:0], g.ends[:0]
	longest := 0
	for i := range prefixGroups {
		p := prefix(i)
		g.prefixes = append(g.prefixes, p[common:]...)
		g.ends = append(g.ends, uint64(len(g.prefixes)))
		for row := g.prefixGroups[i].first; row < g.prefixGroupEnd(i); row++ {
			longest = max(longest, len(g.key(row))-len(p))
		}
	}
	width := min(longest, 8)
	flags := byte(0)
	if g.versions {
		flags = flagVersions
	}
	for _, v := range []int{n, prefixGroups, len(g.heapUnits), len(g.sections), len(g.valueBlocks)} {
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
	for i, s := range g.prefixGroups {
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.first))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(s.partition))
		dst = binary.LittleEndian.AppendUint16(dst, uint16(g.ends[i]))
	}
	dst = append(dst, g.prefixes...)
	return g.appendSuffixes(dst, common, width, restAt)
}

func (g *Builder) prefixGroupEnd(i int) int {
	if i+1 < len(g.prefixGroups) {
		return g.prefixGroups[i+1].first
	}
	return g.Rows()
}

// appendSuffixes appends the array of suffixes and their rests. It writes the length
// of the rests to dst[restAt].
func (g *Builder) appendSuffixes(dst []byte, common, width, restAt int) []byte {
	array := len(dst)
	dst = append(dst, make([]byte, g.Rows()*width)...)
	g.rests, g.restEnds = g.rests[:0], g.restEnds[:0]
	from, restLen := uint64(0), -1
	for i := range g.prefixGroups {
		skip := common + int(g.ends[i]-from)
		from = g.ends[i]
		for row := g.prefixGroups[i].first; row < g.prefixGroupEnd(i); row++ {
			suffix := g.key(row)[skip:]
			took := copy(dst[array+row*width:array+(row+1)*width], suffix)
			g.rests = append(g.rests, suffix[took:]...)
			g.restEnds = binary.LittleEndian.AppendUint16(g.restEnds, uint16(len(g.rests)))
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
		dst = append(dst, g.restEnds...)
	}
	return append(dst, g.rests...)
}
