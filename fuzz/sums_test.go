package fuzz

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/sstable/group"
)

// What follows makes ids, numbers, lengths and sums of mutated files right, as
// docs/format.md describes them, so that what stands behind them is reached.

var little = binary.LittleEndian

// mend makes the files of a directory right.
func mend(files map[string][]byte) {
	m := files["MANIFEST"]
	var dbid [16]byte
	if len(m) >= 40 {
		copy(dbid[:], m[24:])
	}
	for name, b := range files {
		var number uint64
		switch {
		case strings.HasSuffix(name, ".wal"):
			fmt.Sscanf(name, "%d.wal", &number)
			mendLog(b, dbid, number)
		case strings.HasSuffix(name, ".sst"):
			fmt.Sscanf(name, "%d.sst", &number)
			mendSorted(b, dbid, number)
		}
	}
	mendManifest(m, files)
}

// place is what the sums of a segment are xored with at an offset.
func place(dbid [16]byte, number uint64, off int) uint64 {
	x := xxhash.Sum64(little.AppendUint64(dbid[:], number)) + uint64(off)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func mendLog(b []byte, dbid [16]byte, number uint64) {
	const header, recordHeader = 4096, 40
	if len(b) < header {
		return
	}
	copy(b[16:], dbid[:])
	little.PutUint64(b[32:], number)
	sum := xxhash.Sum64(b[:4088]) ^ place(dbid, number, 0)
	little.PutUint64(b[4088:], sum)
	for off := header; len(b)-off >= recordHeader; {
		size := (recordHeader + int(little.Uint32(b[off+12:])) + 7) &^ 7
		if size > len(b)-off {
			return
		}
		rec := b[off : off+size]
		little.PutUint32(rec[16:], uint32(number))
		little.PutUint32(rec[36:], uint32(sum))
		bind := place(dbid, number, off)
		little.PutUint32(rec[8:], uint32((xxhash.Sum64(rec[12:recordHeader])^bind)>>32))
		sum = xxhash.Sum64(rec[8:]) ^ bind
		little.PutUint64(rec, sum)
		off += size
	}
}

func mendSorted(b []byte, dbid [16]byte, number uint64) {
	const header, footer = 48, 152
	if len(b) < header+footer {
		return
	}
	bind := group.Bind(dbid, number)
	sum := func(off, n uint64) {
		if size := uint64(len(b)); n >= group.SumBytes && off <= size && n <= size-off {
			p := b[off : off+n]
			little.PutUint64(p[n-group.SumBytes:], bind.Sum(p[:n-group.SumBytes], int64(off)))
		}
	}
	foot := len(b) - footer
	for _, at := range []int{16, foot + 112} {
		copy(b[at:], dbid[:])
	}
	little.PutUint64(b[32:], number)
	little.PutUint64(b[foot+104:], number)
	sum(0, header)
	spans := make([]uint64, 8)
	for i := range spans {
		spans[i] = little.Uint64(b[foot+8*i:])
	}
	for i := 0; i < len(spans); i += 2 {
		sum(spans[i], spans[i+1])
	}
	sum(uint64(foot), footer)
	index, n := spans[2], spans[3]
	if index > uint64(foot) || n > uint64(foot)-index || n < 4 {
		return
	}
	entries := b[index : index+n]
	count := little.Uint32(entries)
	for entries = entries[4:]; count > 0 && len(entries) >= 24; count-- {
		off, head := little.Uint64(entries), uint64(little.Uint32(entries[8:]))
		sum(off, head)
		mendHeap(b, off, head, sum)
		entries = entries[24:]
	}
}

// mendHeap sets the sums of a group's heap units and extents, whose directories
// it finds by decoding the head as far as that goes.
func mendHeap(b []byte, off, head uint64, sum func(off, n uint64)) {
	if head < 40 || off > uint64(len(b)) || head > uint64(len(b))-off {
		return
	}
	var h group.Head
	h.Decode(b[off:off+head:off+head], int64(off), len(b)-int(off), codec.NewShapeList(nil, 0))
	for _, u := range h.Units {
		sum(uint64(u.Off), uint64(u.Stored))
	}
	for _, e := range h.Extents {
		sum(uint64(e.Off), uint64(e.Stored))
	}
}

func mendManifest(b []byte, files map[string][]byte) {
	const head, logBytes, fileBytes = 72, 16, 72
	if len(b) < head+8 {
		return
	}
	little.PutUint64(b[16:], uint64(len(b)))
	end := len(b) - 8
	off := head + int(min(little.Uint32(b[64:]), 1000))*logBytes
	for n := little.Uint32(b[68:]); n > 0 && off+fileBytes <= end; n-- {
		f := b[off:]
		if file, ok := files[fmt.Sprintf("%06d.sst", little.Uint64(f))]; ok {
			little.PutUint64(f[8:], uint64(len(file)))
			little.PutUint64(f[56:], xxhash.Sum64(file))
		}
		off += fileBytes + int(little.Uint16(f[68:])) + int(little.Uint16(f[70:]))
	}
	little.PutUint64(b[end:], xxhash.Sum64(b[:end])^xxhash.Sum64(b[24:40]))
}

// TestMend asks that right files stay as they are, and that a file whose sums
// were wiped out is made whole: what the page of formats says of sums is true.
func TestMend(t *testing.T) {
	files, want := goldenFiles(t), goldenFiles(t)
	mend(files)
	for name := range want {
		if string(files[name]) != string(want[name]) {
			t.Errorf("mending changed %s, which was right", name)
		}
	}
	clear(files["MANIFEST"][len(files["MANIFEST"])-8:])
	log := files["000006.wal"]
	clear(log[4088:4096])
	clear(log[4096:4108])
	sst := files["000005.sst"]
	clear(sst[40:48])
	clear(sst[len(sst)-8:])
	mend(files)
	for name := range want {
		if string(files[name]) != string(want[name]) {
			t.Errorf("mending did not restore %s", name)
		}
	}
}
