package transfer

import (
	"bytes"
	"errors"
	"io"
)

// MaxRecordBytes limits a record of a file. An entity of the maximum size is far smaller
// in any encoding.
const MaxRecordBytes = 16 << 20

const readBytes = 256 << 10

// input reads a file and returns its lines without copying them.
type input struct {
	r    io.Reader
	file *rawFile // that r reads, perhaps through a decompressor
	buf  []byte
	from int // start of the bytes that were not consumed
	end  int // end of the bytes that were read
	err  error
	line int64 // number of the line at from
}

func newInput(r io.Reader) *input {
	file := &rawFile{r: r}
	return &input{r: file, file: file, line: 1}
}

// view returns the next n bytes without consuming them, valid until extend or consume.
func (in *input) view(n int) []byte { return in.buf[in.from : in.from+n] }

// extend returns the length of the view up to the next line end after the first n bytes,
// including the line feed. At the end of the file it returns the length of the rest,
// which may be n. After the error errTooLong, call skipLine. Other errors are the
// reader's.
func (in *input) extend(n int) (int, error) {
	for {
		if i := bytes.IndexByte(in.buf[in.from+n:in.end], '\n'); i >= 0 {
			if n+i+1 > MaxRecordBytes {
				return n, errTooLong
			}
			return n + i + 1, nil
		}
		searched := n
		n = in.end - in.from
		if n > MaxRecordBytes {
			return searched, errTooLong
		}
		if in.err != nil {
			if in.err == io.EOF {
				return n, nil
			}
			return n, in.err
		}
		in.fill()
	}
}

// fill reads more bytes.
func (in *input) fill() {
	if in.from > 0 && (in.from == in.end || cap(in.buf)-in.end < readBytes) {
		in.end = copy(in.buf[:cap(in.buf)], in.buf[in.from:in.end])
		in.from = 0
	}
	if len(in.buf)-in.end < readBytes {
		grown := make([]byte, max(2*len(in.buf), in.end+readBytes))
		copy(grown, in.buf[:in.end])
		in.buf = grown
	}
	const tries = 100
	for range tries {
		n, err := in.r.Read(in.buf[in.end:])
		in.end += n
		if in.err = err; n > 0 || err != nil {
			return
		}
	}
	in.err = io.ErrNoProgress
}

// consume consumes the next n bytes, which contain the given number of lines.
func (in *input) consume(n int, lines int64) {
	in.from += n
	in.line += lines
}

// skipLine consumes everything up to the next line end.
func (in *input) skipLine() error {
	for {
		rest := in.buf[in.from:in.end]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			in.consume(i+1, 1)
			return nil
		}
		in.consume(len(rest), 0)
		if in.err != nil {
			if in.err == io.EOF {
				return nil
			}
			return in.err
		}
		in.fill()
	}
}

// checkStart starts to decompress a compressed file, consumes a UTF-8 byte order mark, and
// returns an error for a file that is not UTF-8 text. The name of the file says that it
// has the compression named, if any.
func (in *input) checkStart(named Compression) error {
	start, err := in.start()
	if err != nil {
		return err
	}
	found := compressionOf(start)
	switch {
	case named == Uncompressed || found == named:
	case len(start) == 0:
		return brokenFile("the file is empty; a %s file (%s) has a header at least; copy it again", named, named.suffix())
	default:
		return brokenFile("the file is not in the format %s (%s); rename it, or copy it again", named, named.suffix())
	}
	if found != Uncompressed {
		if err := in.decompress(found); err != nil {
			return err
		}
		if start, err = in.start(); err != nil {
			return err
		}
		if compressionOf(start) != Uncompressed {
			return brokenFile("the file is compressed twice; decompress it once")
		}
	}
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		in.consume(3, 0)
	case bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")):
		return brokenFile("the file is UTF-16; save it as UTF-8")
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return brokenFile("the file is a ZIP archive or a spreadsheet; save it as CSV")
	case bytes.HasPrefix(start, []byte("PAR1\x15")):
		return brokenFile("the file is in the format Parquet; rename it, or choose that format")
	}
	return nil
}

// start returns the first bytes of the file, at least five of them unless the file ends
// before, and consumes none.
func (in *input) start() ([]byte, error) {
	for in.end < 5 && in.err == nil {
		in.fill()
	}
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		return nil, in.err
	}
	return in.buf[:in.end], nil
}

// decompress replaces what was read so far by its decompressed text.
func (in *input) decompress(c Compression) error {
	r, err := newDecompressor(c, bytes.NewReader(in.buf[:in.end]), in.file)
	in.r, in.buf, in.from, in.end, in.err = r, nil, 0, 0, err
	return err
}

// trimLineEnd removes LF or CR LF from the end of a line.
func trimLineEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
