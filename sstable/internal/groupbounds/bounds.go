package groupbounds

import (
	"encoding/binary"
	"errors"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/sstable/internal/fields"
)

// Bounds are the decoded bounds of all groups of a file. They are safe for concurrent
// use.
type Bounds struct {
	columns []Column
	p       []byte
	groups  []boundsOfGroup
	records []uint32 // where the record of each column of each group begins in p
	// stamp is the Timestamp of all rows, 0 if the groups say theirs.
	stamp edm.Ticks
}

// boundsOfGroup is where the bounds of a group begin in the section, and which of records is
// its first one.
type boundsOfGroup struct{ off, first uint32 }

// Assign gives all rows one Timestamp. Call it before the first use.
func (s *Bounds) Assign(stamp edm.Ticks) { s.stamp = stamp }

// Decode reads the section of a file of n groups. The result keeps p.
func Decode(p []byte, n int) (s *Bounds, err error) {
	c := &fields.Cursor{P: p}
	columns := c.U32()
	if columns > MaxColumns {
		return nil, errors.New("bounds of too many columns")
	}
	s = &Bounds{columns: make([]Column, columns), p: p}
	for i := range s.columns {
		t := edm.Type(c.U8())
		s.columns[i] = Column{string(c.Bytes(c.U16())), t}
		if c.Bad || !t.Valid() {
			return nil, errors.New("invalid column")
		}
	}
	if n > (len(p)-c.Off)/groupBytes {
		return nil, errors.New("bounds of fewer groups than the file has")
	}
	s.groups = make([]boundsOfGroup, n)
	last := make([]int, columns) // for each column, the last group that has it, from 1
	for i := range s.groups {
		s.groups[i] = boundsOfGroup{uint32(c.Off), uint32(len(s.records))}
		columns := c.U16()
		if columns > len(s.columns) {
			return nil, errors.New("bounds of more columns than the file has")
		}
		c.Bytes(groupBytes - 2)
		if i == 0 { // most groups have the same columns
			s.records = make([]uint32, 0, min(int64(n)*int64(columns), int64(len(p)/minRecordBytes)))
		}
		for range columns {
			s.records = append(s.records, uint32(c.Off))
			id, ok := s.checkColumn(c)
			if !ok || last[id] == i+1 {
				return nil, errors.New("invalid bounds")
			}
			last[id] = i + 1
		}
	}
	if c.Bad || c.Off != len(p) {
		return nil, errors.New("bytes after the bounds of the last group, or too few for it")
	}
	return s, nil
}

// checkColumn reads the record of a column. It returns the column, and whether the record is
// well formed.
func (s *Bounds) checkColumn(c *fields.Cursor) (id int, ok bool) {
	id, flags := c.U16(), c.U8()
	if c.Bad || id >= len(s.columns) || flags > flagAllRows|flagNaN|flagLower|flagUpper {
		return 0, false
	}
	for _, flag := range []byte{flagLower, flagUpper} {
		if flags&flag != 0 {
			skipBound(c, s.columns[id].Type)
		}
	}
	return id, !c.Bad
}

// minRecordBytes is the length of a record with neither a lower nor an upper bound.
const minRecordBytes = 3

// Sizes in memory. That of a Column includes its name.
const (
	boundsMemBytes        = 120
	boundsOfGroupMemBytes = 8
	recordMemBytes        = 4
	columnMemBytes        = 64
)

// MemBytes returns about how much memory s takes beside the section.
func (s *Bounds) MemBytes() int {
	return boundsMemBytes + boundsOfGroupMemBytes*len(s.groups) + recordMemBytes*cap(s.records) + columnMemBytes*len(s.columns)
}

// skipBound skips a bound of values of type t.
func skipBound(c *fields.Cursor, t edm.Type) {
	switch t {
	case edm.TypeString:
		c.Bytes(int(c.U8()))
	case edm.TypeGuid:
		c.Bytes(guidBytes)
	case edm.TypeBinary:
		c.Bad = true
	default:
		c.Bytes(8)
	}
}

// readBound reads a bound of values of type t.
func readBound(c *fields.Cursor, t edm.Type) edm.Value {
	switch t {
	case edm.TypeString:
		return edm.StringBytes(c.Bytes(int(c.U8())))
	case edm.TypeGuid:
		if b := c.Bytes(guidBytes); b != nil {
			return edm.GuidWords(binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:]))
		}
		return edm.Value{}
	case edm.TypeBinary:
		c.Bad = true
		return edm.Value{}
	}
	return edm.Fixed(t, c.U64())
}
