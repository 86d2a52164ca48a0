package scan

import "github.com/tablerock-db/tablerock/codec"

// deletedRange is a range of keys in which a walk passes tombstones of files, and no entity.
type deletedRange struct {
	tombstones  int
	first, last []byte // the user keys of those
}

// emptied returns a deletedRange without tombstones that has the memory of d.
func (d *deletedRange) emptied() deletedRange {
	return deletedRange{first: d.first[:0], last: d.last[:0]}
}

// add adds the tombstone with an internal key.
func (d *deletedRange) add(key []byte) {
	user := key[:len(key)-codec.TrailerLen]
	if d.tombstones++; d.tombstones == 1 {
		d.first = append(d.first[:0], user...)
	}
	d.last = append(d.last[:0], user...)
}

// end ends the range, and tells data of it if it has many tombstones.
func (d *deletedRange) end(data Data, reverse bool) {
	if d.tombstones >= minDeletedRange {
		lower, upper := d.first, d.last
		if reverse {
			lower, upper = upper, lower
		}
		data.FoundDeleted(lower, append(upper, 0), d.tombstones)
	}
	d.tombstones = 0
}
