package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// Compression is the compression of a whole file.
type Compression uint8

// The compressions.
const (
	Uncompressed Compression = iota
	Gzip
	Zstandard
)

// compressions lists the ends of file names and the first bytes of files.
var compressions = []struct {
	c            Compression
	suffix, name string
	magic        []byte
}{
	{Gzip, ".gz", "gzip", []byte("\x1f\x8b")},
	{Zstandard, ".zst", "Zstandard", []byte("\x28\xb5\x2f\xfd")},
}

// CompressionOf returns the compression that the end of a file's name tells, and the name
// without that end.
func CompressionOf(name string) (Compression, string) {
	for _, k := range compressions {
		if n := len(name) - len(k.suffix); n > 0 && strings.EqualFold(name[n:], k.suffix) {
			return k.c, name[:n]
		}
	}
	return Uncompressed, name
}

// compressionOf returns the compression of a file with these first bytes.
func compressionOf(start []byte) Compression {
	for _, k := range compressions {
		if bytes.HasPrefix(start, k.magic) {
			return k.c
		}
	}
	if len(start) >= 4 && start[0]>>4 == 5 && string(start[1:4]) == "\x2a\x4d\x18" {
		return Zstandard // a frame to skip, with which pzstd begins
	}
	return Uncompressed
}

// String returns the name of the format.
func (c Compression) String() string {
	for _, k := range compressions {
		if k.c == c {
			return k.name
		}
	}
	return "none"
}

// suffix returns the end of the names of such files.
func (c Compression) suffix() string {
	for _, k := range compressions {
		if k.c == c {
			return k.suffix
		}
	}
	return ""
}

// rawFile reads the bytes of a file as they are stored, one after the other or, for
// Parquet, anywhere.
type rawFile struct {
	r    io.Reader
	at   io.ReaderAt
	size int64        // for at
	n    atomic.Int64 // bytes read
	err  error        // of Read, which returns it again
}

// ReadAt implements io.ReaderAt.
func (f *rawFile) ReadAt(p []byte, at int64) (int, error) {
	n, err := f.at.ReadAt(p, at)
	f.n.Add(int64(n))
	return n, err
}

func (f *rawFile) Read(p []byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	n, err := f.r.Read(p)
	f.n.Add(int64(n))
	f.err = err
	return n, err
}

// maxWindow limits the memory for decompression. It is the window of zstd --ultra -22.
const maxWindow = 128 << 20

// decompressor reads the text of a compressed file.
type decompressor struct {
	io.Reader
	c    Compression
	file *rawFile
}

// newDecompressor returns a reader of the text whose compressed form is data, which reads from
// file.
func newDecompressor(c Compression, data io.Reader, file *rawFile) (io.Reader, error) {
	d := &decompressor{c: c, file: file}
	var err error
	switch c {
	case Gzip:
		d.Reader, err = gzip.NewReader(data)
	case Zstandard:
		// One goroutine, the caller's: the decoder then needs no Close.
		d.Reader, err = zstd.NewReader(data, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	}
	return d, d.explain(err)
}

func (d *decompressor) Read(p []byte) (int, error) {
	n, err := d.Reader.Read(p)
	return n, d.explain(err)
}

// explain returns the error of the file itself, or says that its compressed data is damaged.
func (d *decompressor) explain(err error) error {
	switch {
	case err == nil || err == io.EOF:
		return err
	case d.file.err != nil && d.file.err != io.EOF:
		return d.file.err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &DamageError{brokenFile("the %s data is truncated; copy the file again", d.c)}
	case errors.Is(err, zstd.ErrWindowSizeExceeded): // the library returns it for wrong lengths too
		const text = "the %s data has a window of more than %d MiB, as by zstd --long=28, or is damaged; decompress it by \"zstd -d --long=31\", or copy it again"
		return &DamageError{brokenFile(text, d.c, maxWindow>>20)}
	}
	return &DamageError{brokenFile("the %s data is damaged: %w; copy the file again", d.c, err)}
}

// DamageError reports a compressed file whose data is damaged or truncated. What was read
// before can be wrong, too. It matches edm.ErrInvalid.
type DamageError struct{ file error }

// Error returns what is wrong, and that the file is to be copied again.
func (e *DamageError) Error() string { return e.file.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.file }

// open starts to read the text of the file. It starts to decompress a compressed file,
// consumes a UTF-8 byte order mark, and returns an error for a file that is not UTF-8 text, or
// that does not have the compression that its name says.
func (r *Reader) open() error {
	text := bufio.NewReader(r.file)
	start, err := peek(text)
	if err != nil {
		return err
	}
	named, found := r.o.Compression, compressionOf(start)
	switch {
	case named == Uncompressed || found == named:
	case len(start) == 0:
		return brokenFile("the file is empty; a %s file (%s) has a header at least; copy it again", named, named.suffix())
	default:
		return brokenFile("the file is not in the format %s (%s); rename it, or copy it again", named, named.suffix())
	}
	if found != Uncompressed {
		d, err := newDecompressor(found, text, r.file)
		if err != nil {
			return err
		}
		text, r.compressed = bufio.NewReader(d), true
		if start, err = peek(text); err != nil {
			return err
		}
		if compressionOf(start) != Uncompressed {
			return brokenFile("the file is compressed twice; decompress it once")
		}
	}
	r.text = textfile.NewReader(text)
	switch {
	case bytes.HasPrefix(start, []byte("\xef\xbb\xbf")):
		_, _ = text.Discard(3) // which start has
	case bytes.HasPrefix(start, []byte("\xff\xfe")) || bytes.HasPrefix(start, []byte("\xfe\xff")):
		return brokenFile("the file is UTF-16; save it as UTF-8")
	case bytes.HasPrefix(start, []byte("PK\x03\x04")):
		return brokenFile("the file is a ZIP archive or a spreadsheet; save it as CSV")
	case bytes.HasPrefix(start, []byte("PAR1\x15")):
		return brokenFile("the file is in the format Parquet; rename it, or choose that format")
	}
	return nil
}

// peek returns the first bytes of a text, at least five of them unless it ends before.
func peek(text *bufio.Reader) ([]byte, error) {
	start, err := text.Peek(5)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return start, err
}

// checkRest reads the rest of a compressed file and returns the error of the file, or that its
// data is damaged, or that of ctx. What was read before may come from damaged data: the
// checksum is at the end.
func (r *Reader) checkRest(ctx context.Context) error {
	if !r.compressed || r.text == nil {
		return nil
	}
	return r.text.Discard(ctx)
}

// NewCompressor returns a writer that compresses to w. Close ends the compressed data and
// does not close w.
func NewCompressor(w io.Writer, c Compression) (io.WriteCloser, error) {
	switch c {
	case Gzip:
		return gzip.NewWriter(w), nil
	case Zstandard:
		return zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
	}
	return plainWriter{w}, nil
}

// plainWriter writes to w without compression.
type plainWriter struct{ io.Writer }

func (plainWriter) Close() error { return nil }
