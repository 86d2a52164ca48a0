package parquetfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
)

// chunk reads the values of a column, row group by row group.
type chunk struct {
	r        *Reader
	index    int
	name     string
	physical format.Type
	fixed    int // bytes of a FixedLenByteArray
	optional bool
	kind     kind // of the values
	scale    int64

	codec   format.CompressionCodec
	at, end int64  // of the pages that were not read
	raw     []byte // of the page, as it is stored
	text    []byte // of the page, decompressed
	dict    []byte // of the dictionary, decompressed
	offsets []int  // of the values in dict
	held    int64  // bytes of the dictionary, in Reader.held

	left       int    // rows left in the page
	levels     hybrid // whether each row has a value
	values     []byte // left, for plain values
	bit        int    // of values, for plain booleans
	indexed    bool   // the values are indexes into the dictionary
	indexes    hybrid
	rleBoolean bool // indexes has the booleans

	present bool
	value   []byte // of the row, little-endian for numbers; valid until next
	boolean bool
}

// begin starts to read the pages at offsets from at to end.
func (c *chunk) begin(codec format.CompressionCodec, at, end int64) error {
	switch codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
	default:
		return &Error{fmt.Sprintf("it is compressed with %v; write it with Snappy, gzip, Zstandard or none", codec)}
	}
	c.codec, c.at, c.end, c.left = codec, at, end, 0
	c.dict, c.offsets = nil, nil
	c.r.held -= c.held
	c.held = 0
	return nil
}

// next moves to the value of the next row.
func (c *chunk) next() error {
	for c.left == 0 {
		if err := c.page(); err != nil {
			return err
		}
	}
	c.left--
	c.present = true
	if c.optional {
		level, err := c.levels.next()
		if err != nil {
			return err
		}
		if c.present = level != 0; !c.present {
			return nil
		}
	}
	return c.read()
}

// read reads a value of the page.
func (c *chunk) read() error {
	switch {
	case c.indexed:
		i, err := c.indexes.next()
		if err != nil {
			return err
		}
		if int(i)+1 >= len(c.offsets) {
			return damaged("index %d of a dictionary of %d values", i, max(len(c.offsets)-1, 0))
		}
		c.value = c.dict[c.offsets[i]:c.offsets[i+1]]
		if c.physical == format.ByteArray {
			c.value = c.value[4:]
		}
		return nil
	case c.rleBoolean:
		b, err := c.indexes.next()
		c.boolean = b != 0
		return err
	case c.physical == format.Boolean:
		if c.bit >= 8*len(c.values) {
			return damaged("a page has too few values")
		}
		c.boolean = c.values[c.bit/8]>>(c.bit%8)&1 != 0
		c.bit++
		return nil
	}
	n, err := c.plainLength(c.values)
	if err != nil {
		return err
	}
	c.value = c.values[:n]
	if c.physical == format.ByteArray {
		c.value = c.value[4:]
	}
	c.values = c.values[n:]
	return nil
}

// plainLength returns the length of the plain value at the start of b, including its length
// in a ByteArray.
func (c *chunk) plainLength(b []byte) (int, error) {
	n := 8
	switch c.physical {
	case format.Int32, format.Float:
		n = 4
	case format.FixedLenByteArray:
		n = c.fixed
	case format.ByteArray:
		if len(b) < 4 {
			return 0, damaged("a page has too few values")
		}
		length := binary.LittleEndian.Uint32(b)
		if uint64(length) > uint64(len(b)-4) {
			return 0, damaged("a value of %d bytes in %d bytes of a page", length, len(b)-4)
		}
		n = 4 + int(length)
	}
	if n > len(b) {
		return 0, damaged("a page has too few values")
	}
	return n, nil
}

// page reads the next page.
func (c *chunk) page() error {
	header, err := c.header()
	if err != nil {
		return err
	}
	size, full := int64(header.CompressedPageSize), int64(header.UncompressedPageSize)
	switch {
	case size < 0 || size > c.end-c.at || full < 0:
		return damaged("a page of %d bytes, %d decompressed, in %d bytes", size, full, c.end-c.at)
	case size > maxPage || full > maxPage:
		return &Error{fmt.Sprintf("a page has %d bytes, at most %d are supported; write smaller pages", max(size, full), maxPage)}
	}
	others := c.r.held - int64(cap(c.raw)+cap(c.text))
	if others+size+full > c.r.limit {
		return c.r.tooLong()
	}
	c.raw = slices.Grow(c.raw[:0], int(size))[:size]
	c.text = slices.Grow(c.text[:0], int(full))[:0]
	c.r.held = others + int64(cap(c.raw)+cap(c.text))
	if err := c.r.readAt(c.raw, c.at); err != nil {
		return err
	}
	c.at += size
	if sum := uint32(header.CRC); sum != 0 && sum != crc32.ChecksumIEEE(c.raw) {
		return damaged("a page has another checksum than its header")
	}
	switch {
	case header.Type == format.DictionaryPage && header.DictionaryPageHeader.Valid:
		return c.dictionary(&header.DictionaryPageHeader.V, int(full))
	case header.Type == format.DataPage && header.DataPageHeader.Valid:
		return c.dataV1(&header.DataPageHeader.V, int(full))
	case header.Type == format.DataPageV2 && header.DataPageHeaderV2.Valid:
		return c.dataV2(&header.DataPageHeaderV2.V, int(full))
	case header.Type == format.IndexPage:
		return nil
	}
	return damaged("a page of unknown type %v", header.Type)
}

func (r *Reader) tooLong() error {
	return &Error{fmt.Sprintf("the pages of all columns have more than %d bytes; write smaller pages", r.limit)}
}

// maxHeader limits the header of a page.
const maxHeader = 4 << 20

// header reads the header of the next page.
func (c *chunk) header() (*format.PageHeader, error) {
	for n := int64(4 << 10); ; n *= 8 {
		n = min(n, c.end-c.at, maxHeader)
		if n == 0 {
			return nil, damaged("its pages end early")
		}
		c.r.head = slices.Grow(c.r.head[:0], int(n))[:n]
		if err := c.r.readAt(c.r.head, c.at); err != nil {
			return nil, err
		}
		length, err := thriftLength(c.r.head)
		switch {
		case err == errShort && n < min(c.end-c.at, maxHeader):
			continue
		case err != nil:
			return nil, damaged("the header of a page: %v", err)
		}
		header := new(format.PageHeader)
		if err := decode(c.r.head[:length], header); err != nil {
			return nil, err
		}
		c.at += int64(length)
		return header, nil
	}
}

// decompress returns src, which must have n bytes when it is decompressed. Writers do not
// compress a page of nulls, which has none.
func (c *chunk) decompress(src []byte, n int) ([]byte, error) {
	if len(src) == 0 && n == 0 {
		return nil, nil
	}
	dst := c.text[:0]
	var err error
	switch c.codec {
	case format.Uncompressed:
		dst = src
	case format.Snappy:
		length, lengthErr := snappy.DecodedLen(src)
		if err = lengthErr; err == nil && length == n {
			dst, err = snappy.Decode(dst[:n], src)
		}
	case format.Gzip:
		dst, err = c.gunzip(dst[:n], src)
	case format.Zstd:
		dst, err = zstdDecoder().DecodeAll(src, dst)
	}
	if err != nil {
		return nil, damaged("a page that %v cannot decompress: %v", c.codec, err)
	}
	if len(dst) != n {
		return nil, damaged("a page has another size than the %d bytes of its header", n)
	}
	return dst, nil
}

// zstdDecoder returns a decoder of whole pages, which does not decompress beyond the capacity of
// its destination.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("parquetfile: " + err.Error()) // the options are constants
	}
	return d
})

// gunzip decompresses src to fill dst.
func (c *chunk) gunzip(dst, src []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(src))
	if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(z, dst); err != nil {
		return nil, err
	}
	if n, err := z.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errors.Join(errors.New("it has more bytes"), err)
	}
	return dst, nil
}

// oldDictionary is the encoding of dictionaries and of their indexes in files of version 1,
// PLAIN_DICTIONARY, which many programs still write.
const oldDictionary format.Encoding = 2

// dictionary reads the dictionary.
func (c *chunk) dictionary(h *format.DictionaryPageHeader, full int) error {
	text, err := c.decompress(c.raw, full)
	if err != nil {
		return err
	}
	if h.Encoding != format.Plain && h.Encoding != oldDictionary || c.physical == format.Boolean {
		return unsupported(h.Encoding)
	}
	n := int64(h.NumValues)
	if n < 0 || n > int64(len(text)) {
		return damaged("a dictionary of %d values in %d bytes", n, len(text))
	}
	c.r.held -= c.held
	c.held = int64(len(text)) + 8*(n+1)
	if c.r.held += c.held; c.r.held > c.r.limit {
		return c.r.tooLong()
	}
	c.dict = append([]byte(nil), text...)
	c.offsets = append(make([]int, 0, n+1), 0)
	at := 0
	for range n {
		length, err := c.plainLength(c.dict[at:])
		if err != nil {
			return err
		}
		at += length
		c.offsets = append(c.offsets, at)
	}
	return nil
}

func unsupported(e format.Encoding) error {
	return &Error{fmt.Sprintf("the encoding %v is not supported; write version 1 of the format, or plain or dictionary encoding", e)}
}

// dataV1 begins a page whose levels are compressed with its values.
func (c *chunk) dataV1(h *format.DataPageHeader, full int) error {
	text, err := c.decompress(c.raw, full)
	if err != nil {
		return err
	}
	if c.optional {
		if h.DefinitionLevelEncoding != format.RLE {
			return unsupported(h.DefinitionLevelEncoding)
		}
		if len(text) < 4 || uint64(binary.LittleEndian.Uint32(text)) > uint64(len(text)-4) {
			return damaged("a page with levels longer than the page")
		}
		n := 4 + int(binary.LittleEndian.Uint32(text))
		c.levels = hybrid{b: text[4:n], width: 1}
		text = text[n:]
	}
	return c.begun(int(h.NumValues), h.Encoding, text)
}

// dataV2 begins a page whose levels are before its values, without compression.
func (c *chunk) dataV2(h *format.DataPageHeaderV2, full int) error {
	levels, repetition := int(h.DefinitionLevelsByteLength), int(h.RepetitionLevelsByteLength)
	if levels < 0 || repetition != 0 || levels > len(c.raw) || levels > full {
		return damaged("a page with levels of %d and %d bytes", levels, repetition)
	}
	text := c.raw[levels:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		var err error
		if text, err = c.decompress(text, full-levels); err != nil {
			return err
		}
	}
	c.levels = hybrid{b: c.raw[:levels], width: 1}
	return c.begun(int(h.NumValues), h.Encoding, text)
}

// begun begins the values of a page with n rows.
func (c *chunk) begun(n int, e format.Encoding, values []byte) error {
	if n < 0 {
		return damaged("a page of %d values", n)
	}
	c.left, c.values, c.bit, c.indexed, c.rleBoolean = n, values, 0, false, false
	switch {
	case e == format.Plain:
	case e == format.RLEDictionary || e == oldDictionary:
		if len(values) == 0 {
			values = []byte{0} // all rows are null
		}
		if values[0] > 32 {
			return damaged("indexes of %d bits", values[0])
		}
		c.indexed, c.indexes = true, hybrid{b: values[1:], width: int(values[0])}
	case e == format.RLE && c.physical == format.Boolean:
		if len(values) < 4 {
			values = make([]byte, 4)
		}
		c.rleBoolean, c.indexes = true, hybrid{b: values[4:], width: 1}
	default:
		return unsupported(e)
	}
	return nil
}

// hybrid decodes numbers in runs, each of one repeated number or of packed bits.
type hybrid struct {
	b      []byte
	width  int // bits of a number
	run    uint64
	packed bool
	number uint32
	bit    int // of b, in a packed run
}

// next returns the next number.
func (h *hybrid) next() (uint32, error) {
	if h.run == 0 {
		if err := h.begin(); err != nil {
			return 0, err
		}
	}
	h.run--
	if !h.packed {
		return h.number, nil
	}
	n := uint32(0)
	if h.width == 1 {
		n = uint32(h.b[h.bit>>3]>>(h.bit&7)) & 1
		h.bit++
	} else {
		for got := 0; got < h.width; {
			take := min(8-h.bit&7, h.width-got)
			n |= uint32(h.b[h.bit>>3]>>(h.bit&7)) & (1<<take - 1) << got
			got += take
			h.bit += take
		}
	}
	if h.run == 0 {
		h.b, h.bit = h.b[h.bit/8:], 0
	}
	return n, nil
}

// begin begins the next run.
func (h *hybrid) begin() error {
	head, size := binary.Uvarint(h.b)
	if size <= 0 || head>>1 == 0 {
		return damaged("a page has too few levels or indexes")
	}
	h.b = h.b[size:]
	h.packed = head&1 != 0
	if h.packed {
		// The run has groups of eight numbers, and each group as many bytes as a number bits.
		if h.width > 0 && (head>>1 > uint64(len(h.b)) || int(head>>1)*h.width > len(h.b)) {
			return damaged("a run of %d numbers in %d bytes", head>>1*8, len(h.b))
		}
		h.run, h.bit = head>>1*8, 0
		return nil
	}
	n := (h.width + 7) / 8
	if n > len(h.b) {
		return damaged("a page has too few levels or indexes")
	}
	h.run, h.number = head>>1, 0
	for i := range n {
		h.number |= uint32(h.b[i]) << (8 * i)
	}
	h.b = h.b[n:]
	return nil
}
