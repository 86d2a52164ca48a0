package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
)

// MaxRecordBytes is the most bytes that a record of a file may have. An entity
// of the largest size stays far below, however it is escaped.
const MaxRecordBytes = 16 << 20

const readBytes = 256 << 10

// input gives the lines of a file in place.
type input struct {
	r    io.Reader
	buf  []byte
	from int // of what is not taken yet
	end  int // of what is read
	err  error
	line int64 // number of the line that begins at from
	read atomic.Int64
}

func newInput(r io.Reader) *input { return &input{r: r, line: 1} }

// view returns the first n bytes that are not taken, valid until extend or take.
func (in *input) view(n int) []byte { return in.buf[in.from : in.from+n] }

// extend returns where the line ends, its line feed included, of which the first
// n bytes have been looked at: n itself if the file ends there. The error is
// errTooLong, then the rest of the line is still to be dropped, or the reader's.
func (in *input) extend(n int) (int, error) {
	for {
		if i := bytes.IndexByte(in.buf[in.from+n:in.end], '\n'); i >= 0 {
			if n+i+1 > MaxRecordBytes {
				return n, errTooLong
			}
			return n + i + 1, nil
		}
		looked := n
		n = in.end - in.from
		if n > MaxRecordBytes {
			return looked, errTooLong
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

// fill reads more behind what is there.
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
		in.read.Add(int64(n))
		if in.err = err; n > 0 || err != nil {
			return
		}
	}
	in.err = io.ErrNoProgress
}

// take goes on behind the next n bytes, which hold so many lines.
func (in *input) take(n int, lines int64) {
	in.from += n
	in.line += lines
}

// drop takes what there is and the rest of its line.
func (in *input) drop() error {
	for {
		rest := in.buf[in.from:in.end]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			in.take(i+1, 1)
			return nil
		}
		in.take(len(rest), 0)
		if in.err != nil {
			if in.err == io.EOF {
				return nil
			}
			return in.err
		}
		in.fill()
	}
}

// begin looks at what the file begins with: it takes the mark of UTF-8, and
// refuses what is no text.
func (in *input) begin() error {
	for in.end < 3 && in.err == nil {
		in.fill()
	}
	if in.err != nil && !errors.Is(in.err, io.EOF) {
		return in.err
	}
	head := in.buf[:in.end]
	switch {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		in.take(3, 0)
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("the file is UTF-16; %w", invalid("save it as UTF-8"))
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return fmt.Errorf("the file is compressed; %w", invalid("unpack it first, as in gzip -dc FILE | tablerock import TABLE -"))
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return fmt.Errorf("the file is a ZIP archive or a spreadsheet; %w", invalid("save it as CSV"))
	}
	return nil
}

// trimEnd cuts the line feed, or carriage return and line feed, off a line.
func trimEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
