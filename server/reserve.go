package server

import (
	"encoding/binary"
	"math/bits"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/server/internal/memory"
	"github.com/tablerock-db/tablerock/server/internal/request"
	"github.com/tablerock-db/tablerock/store"
)

const (
	// filterGrowth is an upper bound for the bytes of a parsed filter, for each of its text.
	filterGrowth = 72
	// shortFilter is the length of the texts whose filters are not reserved.
	shortFilter = 512
)

// reserveFilter reserves the memory of the filter of a text: until the response is sent, it
// has many times the length of the text.
func (x *exchange) reserveFilter(text string) error {
	if len(text) <= shortFilter {
		return nil
	}
	return x.out.Hold(int64(len(text)) * filterGrowth)
}

// reserveInserts reserves the response to a batch whose inserts return the entities.
func (x *exchange) reserveInserts(ops []batchOp, writes []store.Op) error {
	n := 0
	for i := range ops {
		if ops[i].kind == store.OpInsert && ops[i].command.prefer != request.ReturnNoContent {
			n += entityBytes(&writes[i].Entity, ops[i].level, x.base)
		}
	}
	if n == 0 {
		return nil
	}
	return x.reserveInserted(n)
}

// reserveInserted reserves the response to inserts of the body, before they happen: a write
// that happened cannot be refused. The response repeats the body, and has more bytes for the
// entities.
func (x *exchange) reserveInserted(more int) error {
	n := int64(len(x.body.Bytes) + more - memory.FreeBytes)
	if n > 0 {
		n += int64(jsonGrowth(x.body.Bytes))
	}
	if n <= 0 {
		return nil
	}
	return x.out.Reserve(n)
}

// Upper bounds of what the response to an insert has beside its body.
const (
	insertedBytes = 1 << 10 // headers, metadata, name of the table, Timestamp and ETag
	propertyBytes = 32      // a number or a time in another form
	urlGrowth     = 3       // of a character in a URL
	maxLinks      = 3       // Location, odata.id and odata.editLink
)

// entityBytes returns an upper bound for what the response to an insert of e has beside the
// body of the insert.
func entityBytes(e *edm.Entity, level odata.Level, base string) int {
	links := 1
	if level >= odata.Full {
		links = maxLinks
	}
	link := len(base) + urlGrowth*(len(e.Key.Partition)+len(e.Key.Row))
	return insertedBytes + links*link + propertyBytes*len(e.Properties)
}

// jsonGrowth returns an upper bound for how much longer text becomes if its characters
// beyond ASCII are escaped: a byte of UTF-8 becomes three at most.
func jsonGrowth(text []byte) int {
	const high = 0x8080808080808080
	n := 0
	for ; len(text) >= 8; text = text[8:] {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(text) & high)
	}
	for _, c := range text {
		n += int(c >> 7)
	}
	return 2 * n
}
