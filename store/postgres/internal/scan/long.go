package scan

import (
	"bytes"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// indexedPrefix is the length of the prefixes of p and r in the index of tr_long.
const indexedPrefix = 1200

func prefixOf(b []byte) []byte { return b[:min(len(b), indexedPrefix)] }

// fetchLong reads the next chunk of tr_long. Its index has prefixes of the keys, so its order is
// that of the keys only within one partition. So a chunk is of one partition.
func (s *source) fetchLong() error {
	at := s.left.lo
	outside := isAfterAll(at.r)
	if s.c.q.Reverse {
		at = s.left.hi
		outside = len(at.r) == 0
	}
	if outside {
		if found, err := s.enterPartition(at.p); err != nil || !found {
			return err
		}
		at = s.next()
	}
	lo, hi := []byte{}, []byte{afterAll}
	if bytes.Equal(at.p, s.left.lo.p) {
		lo = s.left.lo.r
	}
	if bytes.Equal(at.p, s.left.hi.p) {
		hi = s.left.hi.r
	}
	return s.longChunk(at.p, lo, hi)
}

// longChunk reads the next rows of partition p from lo on and before hi. A statement that sorts
// them would read all of them first. So rows with one prefix, as long as the index has it, come
// in no order; if they are the last ones of a chunk, some can be missing.
func (s *source) longChunk(p, lo, hi []byte) error {
	reverse := s.c.q.Reverse
	limit := s.c.chunkRows()
	read := func(st [2]*wire.Statement, limit int, lo, hi []byte) error {
		return s.rowsOf(st[s.direction()], limit, p, prefixOf(p), lo, prefixOf(lo), hi, prefixOf(hi))
	}
	if err := read(longStatements, limit, lo, hi); err != nil {
		return err
	}
	rows := s.rows
	rows.sort(reverse)
	n := len(rows.rows)
	if !rows.cut && n < limit {
		s.seen = false
		s.endPartition()
		return nil
	}
	prefix := bytes.Clone(prefixOf(rows.row(n - 1)))
	if len(prefix) < indexedPrefix {
		s.stopAt(n-1, limit)
		return nil
	}
	first := n - 1
	for first > 0 && bytes.HasPrefix(rows.row(first-1), prefix) {
		first--
	}
	if first == 0 && rows.cut {
		s.c.adapt(limit, rows)
		rows.reset()
		return nil
	}
	// These rows in their order: all that a chunk can have, or only the first.
	if bytes.Compare(lo, prefix) < 0 {
		lo = prefix
	}
	if end := append(bytes.Clone(prefix), afterAll); bytes.Compare(end, hi) < 0 {
		hi = end
	}
	if first == 0 {
		if err := read(sortedStatements, limit, lo, hi); err != nil || len(rows.rows) == 0 {
			return err
		}
		s.stopAt(len(rows.rows)-1, limit)
		return nil
	}
	next := rows.bound(first, reverse)
	s.c.adapt(limit, rows)
	s.rows = chunks.Get().(*chunk)
	err := read(sortedStatements, 1, lo, hi)
	if err == nil && len(s.rows.rows) > 0 {
		next = s.rows.bound(0, reverse)
	}
	s.rows.free()
	s.rows = rows
	if err != nil {
		rows.reset()
		return err
	}
	rows.rows = rows.rows[:first]
	s.leaveFrom(next)
	return nil
}

func isAfterAll(b []byte) bool { return len(b) == 1 && b[0] == afterAll }

// endPartition takes the partition of the last chunk out of left.
func (s *source) endPartition() {
	if s.c.q.Reverse {
		s.left.hi.r = []byte{}
	} else {
		s.left.lo.r = []byte{afterAll}
	}
	s.done = s.left.lo.compare(s.left.hi) >= 0
}

// enterPartition makes the next partition beyond p the end of left. If there is none, s is
// done. If it was deleted meanwhile, found is false and s is not done.
func (s *source) enterPartition(p []byte) (found bool, err error) {
	// The least prefix of a greater partition, or with Reverse the bound of those of smaller ones. A
	// partition shorter than the prefix has it for itself.
	prefix := append([]byte{}, prefixOf(p)...)
	short := len(p) < indexedPrefix
	if short != s.c.q.Reverse {
		prefix = append(prefix, 0)
	}
	other := s.left.hi.p
	if s.c.q.Reverse {
		other = s.left.lo.p
	}
	next, err := s.partition(partitionStatements[s.direction()], p, prefix, other, prefixOf(other))
	if err != nil || next == nil {
		s.done = err == nil
		return false, err
	}
	if len(next) >= indexedPrefix {
		if next, err = s.partition(prefixStatements[s.direction()], p, prefixOf(next), other); err != nil {
			return false, err
		}
		if next == nil {
			return false, nil // deleted since: the next call looks again
		}
	}
	if s.c.q.Reverse {
		s.left.hi = bound{next, []byte{afterAll}}
	} else {
		s.left.lo = bound{next, []byte{}}
	}
	return true, nil
}

// partition returns the p of the only row of a statement, nil if there is none.
func (s *source) partition(st *wire.Statement, args ...[]byte) ([]byte, error) {
	if err := s.query(st, args...); err != nil || len(s.rows.rows) == 0 {
		return nil, err
	}
	p := bytes.Clone(s.rows.bound(0, false).p)
	s.rows.reset()
	return p, nil
}

const (
	longSQL = tableSQL + `(SELECT p, r, ts, CASE WHEN octet_length(v) <= $10 THEN v END FROM tr_long
		WHERE ` + tidSQL + ` AND substr(p, 1, 1200) = $4 AND substr(r, 1, 1200) >= $6 AND substr(r, 1, 1200) <= $8
		AND p = $3 AND r >= $5 AND r < $7 ORDER BY `
	longForward  = longSQL + "substr(r, 1, 1200) LIMIT $9)"
	longBackward = longSQL + "substr(r, 1, 1200) DESC LIMIT $9)"

	sortedForward  = longSQL + "substr(r, 1201) LIMIT $9)"
	sortedBackward = longSQL + "substr(r, 1201) DESC LIMIT $9)"

	partitionSQL = tableSQL + `(SELECT p, ''::bytea, 0::bigint, ''::bytea FROM tr_long WHERE ` + tidSQL + ` AND `
)

// longStatements read rows of one partition in the order of the index.
var longStatements = [2]*wire.Statement{
	wire.NewStatement("long", 4, longForward, longParams...),
	wire.NewStatement("long_back", 4, longBackward, longParams...),
}

// sortedStatements read rows of one partition with one prefix in the order of their keys, which is that of what comes after
// the prefix. PostgreSQL compresses an r so long, and a sort of r itself expands both for each comparison.
var sortedStatements = [2]*wire.Statement{
	wire.NewStatement("sorted", 4, sortedForward, longParams...),
	wire.NewStatement("sorted_back", 4, sortedBackward, longParams...),
}

var longParams = []uint32{
	wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDInt8, wire.OIDInt8,
}

// partitionStatements find a partition with the next prefix. Only a partition that is
// shorter than the prefix is sure to be the next one.
var partitionStatements = [2]*wire.Statement{
	wire.NewStatement("partition", 4, partitionSQL+`substr(p, 1, 1200) >= $4 AND substr(p, 1, 1200) <= $6 AND p > $3 AND p <= $5
		ORDER BY substr(p, 1, 1200), substr(r, 1, 1200) LIMIT 1)`, partitionParams...),
	wire.NewStatement("partition_back", 4, partitionSQL+`substr(p, 1, 1200) < $4 AND substr(p, 1, 1200) >= $6 AND p < $3 AND p >= $5
		ORDER BY substr(p, 1, 1200) DESC, substr(r, 1, 1200) DESC LIMIT 1)`, partitionParams...),
}

var partitionParams = []uint32{wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea}

// prefixStatements find the next of the partitions that have a prefix. The one that showed the prefix may be
// deleted meanwhile, so they too stop at the end of the range.
var prefixStatements = [2]*wire.Statement{
	wire.NewStatement("prefix", 4, partitionSQL+"substr(p, 1, 1200) = $4 AND p > $3 AND p <= $5 ORDER BY p LIMIT 1)", prefixParams...),
	wire.NewStatement("prefix_back", 4, partitionSQL+"substr(p, 1, 1200) = $4 AND p < $3 AND p >= $5 ORDER BY p DESC LIMIT 1)", prefixParams...),
}

var prefixParams = []uint32{wire.OIDText, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea, wire.OIDBytea}

// row returns the column r of row i, valid until the next reset.
func (c *chunk) row(i int) []byte {
	_, _, r, _ := codec.SplitKey(c.key(i))
	return r
}

// sameIndexed reports whether two user keys have the same p and the same prefix of r in the index
// of tr_long, as long as a prefix can be.
func sameIndexed(a, b []byte) bool {
	n := codec.PartitionLen(a)
	return len(a) > n+indexedPrefix && len(b) > n+indexedPrefix && bytes.Equal(a[:n+indexedPrefix], b[:n+indexedPrefix])
}
