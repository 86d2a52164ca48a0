package sstable

import (
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/predicate"
	"github.com/tablerock-db/tablerock/sstable/internal/columnchunk"
	"github.com/tablerock-db/tablerock/sstable/internal/selection"
)

// matchChunks is match for group g without its head. It does nothing if the chunks do not
// suffice.
func (it *Iterator) matchChunks(g int, sel *Selector) {
	names := sel.rows.Columns()
	if len(names) == 0 || len(names) > columnchunk.MaxColumns || !it.o.Fill {
		return
	}
	if r := it.r; !it.chunks.Opened(g) {
		file := columnchunk.File{Cache: r.o.Cache, DB: r.o.CacheDB, Number: r.o.Number, Kind: kindChunk, Count: len(r.index.Groups)}
		it.chunks.Open(file, g, names)
	}
	if g <= it.lowest || g >= it.highest || !it.allLeft(g) {
		return
	}
	columns, ok := it.chunks.Columns(g, it.o.Snapshot)
	if !ok {
		return
	}
	it.matched, it.seen, it.matches = -1, it.r.index.Groups[g].Rows, predicate.Bits{}
	it.matches.AddRange(0, it.seen)
	if sel.rows.SelectFrom(columns, &it.matches) {
		it.matched, it.found, it.whole = g, it.matches.Len(), true
	}
}

// setCaptures says which texts sel has to keep for the chunks of group g. It reads texts for them
// that it does not need itself only if the column was filtered before.
func (it *Iterator) setCaptures(g int, sel *Selector) {
	for i := range sel.rows.Columns() {
		how := selection.CaptureNone
		switch it.chunks.Lacks(i, g) {
		case columnchunk.All:
			how = selection.CaptureRead
		case columnchunk.Values:
			how = selection.CaptureAll
		}
		sel.rows.SetCapture(i, how)
	}
}

// addToChunks adds the current group, which sel was applied to, to the chunks that do not have
// it, and the texts that sel kept.
func (it *Iterator) addToChunks(sel *Selector) {
	all, g := it.r.index.Groups, it.g
	plain := !it.h.Tombstones() && !it.h.Versions() && !all[g].Continues && (g+1 == len(all) || !all[g+1].Continues)
	for i, name := range sel.rows.Columns() {
		texts, lack := sel.rows.Texts(i), it.chunks.Lacks(i, g)
		property, t := columnchunk.None, edm.Type(0)
		switch {
		case lack == columnchunk.Nothing:
			continue
		case !plain:
		case name == edm.TimestampName:
			property, t = columnchunk.Timestamp, edm.TypeDateTime
		case !it.h.Uniform():
			switch gathered, ok := sel.rows.Gathered(i); {
			case !ok:
			case gathered == nil:
				it.chunks.Add(i, g, it.h, property, t, false, nil)
			case lack == columnchunk.All || gathered.Complete():
				it.chunks.AddGathered(i, g, gathered)
			}
			continue
		case lack == columnchunk.Values && texts == nil:
			continue
		default:
			if n := it.view.Shape().Index(name); n >= 0 {
				property, t = n, it.view.Shape().Type(n)
			}
		}
		it.chunks.Add(i, g, it.h, property, t, plain, texts)
	}
}
