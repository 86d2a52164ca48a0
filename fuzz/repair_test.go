package fuzz

import (
	"encoding/binary"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/tablerock-db/tablerock/internal/filename"
)

// The functions of this file repair ids, numbers, lengths and checksums of mutated files, as
// docs/format.md describes them, so that a fuzzer reaches the data after them.

var little = binary.LittleEndian

// repair repairs the files of a directory.
func repair(files map[string][]byte) {
	m := files["MANIFEST"]
	var dbid [16]byte
	if len(m) >= 40 {
		copy(dbid[:], m[24:])
	}
	for name, b := range files {
		switch kind, number := filename.Parse(name); kind {
		case filename.WAL:
			repairLog(b, dbid, number)
		case filename.SSTable:
			repairSSTable(b, dbid, number)
		}
	}
	repairManifest(m, files)
}

// seedOf returns the seed that is xored with the checksums of a segment at an offset.
func seedOf(dbid [16]byte, number uint64, off int) uint64 {
	x := xxhash.Sum64(little.AppendUint64(dbid[:], number)) + uint64(off)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func repairLog(b []byte, dbid [16]byte, number uint64) {
	const header, recordHeader = 4096, 40
	if len(b) < header {
		return
	}
	copy(b[16:], dbid[:])
	little.PutUint64(b[32:], number)
	sum := xxhash.Sum64(b[:4088]) ^ seedOf(dbid, number, 0)
	little.PutUint64(b[4088:], sum)
	for off := header; len(b)-off >= recordHeader; {
		size := (recordHeader + int(little.Uint32(b[off+12:])) + 7) &^ 7
		if size > len(b)-off {
			return
		}
		rec := b[off : off+size]
		little.PutUint32(rec[16:], uint32(number))
		little.PutUint32(rec[36:], uint32(sum))
		seed := seedOf(dbid, number, off)
		little.PutUint32(rec[8:], uint32((xxhash.Sum64(rec[12:recordHeader])^seed)>>32))
		sum = xxhash.Sum64(rec[8:]) ^ seed
		little.PutUint64(rec, sum)
		off += size
	}
}

func repairSSTable(b []byte, dbid [16]byte, number uint64) {
	const header, fields, extensions = 48, 152, 32
	if len(b) < header+fields+extensions {
		return
	}
	footer := fields
	if little.Uint32(b[8:]) > 1 {
		footer += extensions
	}
	file := xxhash.Sum64(little.AppendUint64(dbid[:], number))
	sum := func(off, n uint64) {
		if size := uint64(len(b)); n >= 8 && off <= size && n <= size-off {
			p := b[off : off+n]
			m := (file + off) * 0x9e3779b97f4a7c15
			m = (m ^ m>>32) * 0xd6e8feb86659fd93
			little.PutUint64(p[n-8:], xxhash.Sum64(p[:n-8])^m^m>>29)
		}
	}
	foot := len(b) - fields
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
	start := uint64(len(b) - footer)
	if footer > fields {
		sum(little.Uint64(b[start:]), little.Uint64(b[start+8:]))
	}
	sum(start, uint64(footer))
	index, n := spans[2], spans[3]
	if index > uint64(foot) || n > uint64(foot)-index || n < 4 {
		return
	}
	entries := b[index : index+n]
	count := little.Uint32(entries)
	for entries = entries[4:]; count > 0 && len(entries) >= 24; count-- {
		off, head := little.Uint64(entries), uint64(little.Uint32(entries[8:]))
		before := uint64(little.Uint16(entries[22:]))
		sum(off+before, head)
		repairHeap(b, off, before, head, sum)
		entries = entries[24:]
	}
}

// repairHeap sets the checksums of a row group's heap units and value blocks, whose
// directories are after the keys and the vectors in the head.
func repairHeap(b []byte, off, before, head uint64, sum func(off, n uint64)) {
	start := off + before
	if head < 40 || off > uint64(len(b)) || start > uint64(len(b)) || head > uint64(len(b))-start {
		return
	}
	const restsVary = 0xffff
	h := b[start : start+head]
	u16 := func(at int) int { return int(little.Uint16(h[at:])) }
	rows, partitions, units, blocks := u16(0), u16(2), u16(4), u16(8)
	at := 32 + u16(12) + 6*partitions + int(little.Uint32(h[16:])) + rows*int(h[10])
	skip := func(n int) bool {
		at += n
		return at <= len(h)-12
	}
	if !skip(0) {
		return
	}
	rests := rows * u16(14)
	if u16(14) == restsVary {
		if rows == 0 || !skip(2*rows) {
			return
		}
		rests = u16(at - 2)
	}
	if !skip(rests) {
		return
	}
	one := false // all rows have one shape, or none
	for i, n := range []int{rows, rows, rows, rows, rows + 1} {
		if i == 3 && one {
			continue // the ordinals
		}
		width := int(h[at])
		one = width == 0
		if !skip(9 + n*width) {
			return
		}
	}
	for _, dir := range []struct{ n, size int }{{units, 12}, {blocks, 16}} {
		for range dir.n {
			if at > len(h)-dir.size {
				return
			}
			sum(off+uint64(little.Uint32(h[at+4:])), uint64(little.Uint32(h[at+8:])))
			at += dir.size
		}
	}
}

func repairManifest(b []byte, files map[string][]byte) {
	head, fileBytes := 72, 72
	const logBytes = 16
	if len(b) < head+8 {
		return
	}
	current := little.Uint32(b[8:]) > 2
	if current && len(b) >= 104+8 {
		head = 104 + int(min(little.Uint64(b[96:]), 1<<20))
		fileBytes = 96
	}
	little.PutUint64(b[16:], uint64(len(b)))
	end := len(b) - 8
	off := head + int(min(little.Uint32(b[64:]), 1000))*logBytes
	for n := little.Uint32(b[68:]); n > 0 && off+fileBytes <= end; n-- {
		f := b[off:]
		if file, ok := files[filename.Make(filename.SSTable, little.Uint64(f))]; ok {
			little.PutUint64(f[8:], uint64(len(file)))
			little.PutUint64(f[56:], xxhash.Sum64(file))
		}
		if current {
			off += int(min(little.Uint64(f[88:]), 1<<16))
		}
		off += fileBytes + int(little.Uint16(f[68:])) + int(little.Uint16(f[70:]))
	}
	little.PutUint64(b[end:], xxhash.Sum64(b[:end])^xxhash.Sum64(b[24:40]))
}

// TestRepair checks that repair keeps correct files and restores cleared checksums, and with
// that the description of checksums in docs/format.md.
func TestRepair(t *testing.T) {
	files, want := goldenFiles(t), goldenFiles(t)
	repair(files)
	for name := range want {
		if string(files[name]) != string(want[name]) {
			t.Errorf("repair changed %s, which was correct", name)
		}
	}
	clear(files["MANIFEST"][len(files["MANIFEST"])-8:])
	log := files["000006.wal"]
	clear(log[4088:4096])
	clear(log[4096:4108])
	sst := files["000005.sst"]
	clear(sst[40:48])
	index := sst[little.Uint64(sst[len(sst)-152+16:]):]
	for n := little.Uint32(index); n > 0; n-- { // the checksums of each head and of the end of its row group
		off, head, size := little.Uint64(index[4:]), uint64(little.Uint32(index[12:])), uint64(little.Uint32(index[16:]))
		end := off + uint64(little.Uint16(index[26:])) + head
		clear(sst[end-8 : end])
		clear(sst[off+size-8 : off+size])
		index = index[24:]
	}
	clear(sst[len(sst)-8:])
	repair(files)
	for name := range want {
		if string(files[name]) != string(want[name]) {
			t.Errorf("repair did not restore %s", name)
		}
	}
}
