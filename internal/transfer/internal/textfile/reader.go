package textfile

import (
	"bytes"
	"context"
	"io"
)

const readBytes = 256 << 10

// Reader reads the text of a file. Create one with NewReader.
type Reader struct {
	r    io.Reader
	buf  []byte
	from int // start of the bytes that were not consumed
	end  int // end of the bytes that were read
	err  error
	line int64 // number of the line at from
}

// NewReader returns a Reader of r. It reads from r when the first record is asked for.
func NewReader(r io.Reader) *Reader { return &Reader{r: r, line: 1} }

// Line returns the next line without its end, and its number, counted from 1. At the end of
// the file the error is io.EOF.
func (r *Reader) Line() (text []byte, line int64, err error) {
	line = r.line
	n, err := r.extendLine()
	if err != nil {
		return nil, line, err
	}
	text = trimLineEnd(r.view(n))
	r.consume(n, 1)
	return text, line, nil
}

// Discard reads the rest of the file. It returns the error of the file other than io.EOF, or
// that of ctx.
func (r *Reader) Discard(ctx context.Context) error {
	for r.err == nil {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.consume(r.end-r.from, 0)
		r.fill()
	}
	if r.err == io.EOF {
		return nil
	}
	return r.err
}

// extendLine returns the length of the next line with its end, which is then in view. It skips
// a line that is too long. At the end of the file the error is io.EOF.
func (r *Reader) extendLine() (int, error) {
	n, err := r.extend(0)
	switch {
	case err == errTooLong:
		if skipErr := r.skipLine(); skipErr != nil {
			err = skipErr
		}
	case err == nil && n == 0:
		err = io.EOF
	}
	return n, err
}

// view returns the next n bytes without consuming them, valid until extend or consume.
func (r *Reader) view(n int) []byte { return r.buf[r.from : r.from+n] }

// extend returns the length of the view up to the next line end after the first n bytes,
// including the line feed. At the end of the file it returns the length of the rest,
// which may be n. After the error errTooLong, call skipLine. Other errors are the
// reader's.
func (r *Reader) extend(n int) (int, error) {
	for {
		if i := bytes.IndexByte(r.buf[r.from+n:r.end], '\n'); i >= 0 {
			if n+i+1 > MaxRecordBytes {
				return n, errTooLong
			}
			return n + i + 1, nil
		}
		searched := n
		n = r.end - r.from
		if n > MaxRecordBytes {
			return searched, errTooLong
		}
		if r.err != nil {
			if r.err == io.EOF {
				return n, nil
			}
			return n, r.err
		}
		r.fill()
	}
}

// fill reads more bytes.
func (r *Reader) fill() {
	if r.from > 0 && (r.from == r.end || cap(r.buf)-r.end < readBytes) {
		r.end = copy(r.buf[:cap(r.buf)], r.buf[r.from:r.end])
		r.from = 0
	}
	if len(r.buf)-r.end < readBytes {
		grown := make([]byte, max(2*len(r.buf), r.end+readBytes))
		copy(grown, r.buf[:r.end])
		r.buf = grown
	}
	const tries = 100
	for range tries {
		n, err := r.r.Read(r.buf[r.end:])
		r.end += n
		if r.err = err; n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}

// consume consumes the next n bytes, which contain the given number of lines.
func (r *Reader) consume(n int, lines int64) {
	r.from += n
	r.line += lines
}

// skipLine consumes everything up to the next line end.
func (r *Reader) skipLine() error {
	for {
		rest := r.buf[r.from:r.end]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			r.consume(i+1, 1)
			return nil
		}
		r.consume(len(rest), 0)
		if r.err != nil {
			if r.err == io.EOF {
				return nil
			}
			return r.err
		}
		r.fill()
	}
}

// trimLineEnd removes LF or CR LF from the end of a line.
func trimLineEnd(line []byte) []byte {
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r"))
}
