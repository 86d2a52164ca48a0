package archive

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/tablerock-db/tablerock/codec"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/arena"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/filename"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
	"github.com/tablerock-db/tablerock/wal"
)

// ErrEmpty is the error of OpenLog for a segment without records.
var ErrEmpty = errors.New("the segment has no records")

// Chunk is a chunk to be archived. Read returns its bytes once. Close it.
type Chunk struct {
	Header
	io.Reader
	memory *arena.Memory
	files  []vfs.File
}

// Close frees the memory and closes the files of p.
func (p *Chunk) Close() error {
	if p.memory != nil {
		p.memory.Free(int(p.Bytes))
	}
	var err error
	for _, f := range p.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// begin sets the reader of the encoding. check returns the error of the payload after it
// was read.
func (p *Chunk) begin(payload io.Reader, check func() error) {
	head := appendHeader(nil, &p.Header)
	sum := xxhash.New()
	_, _ = sum.Write(head[headSumOff:]) // never fails
	p.Reader = io.MultiReader(bytes.NewReader(head), io.TeeReader(payload, sum), &trailer{sum: sum, check: check})
}

// trailer reads the sum of the bytes before it.
type trailer struct {
	sum   *xxhash.Digest
	check func() error
	rest  *bytes.Reader
}

func (t *trailer) Read(p []byte) (int, error) {
	if t.rest == nil {
		if err := t.check(); err != nil {
			return 0, err
		}
		t.rest = bytes.NewReader(binary.LittleEndian.AppendUint64(nil, t.sum.Sum64()))
	}
	return t.rest.Read(p)
}

// Source names the database of a chunk.
type Source struct {
	FS    vfs.FS
	Dir   string
	DBID  [16]byte
	Epoch uint64
}

// OpenLog returns the chunk of a segment whose records end at the offset end, or with 0
// where its valid records end. It verifies them, and reads the segment into memory outside
// the Go heap.
func OpenLog(s Source, number uint64, end int64) (*Chunk, error) {
	name := path.Join(s.Dir, filename.Make(filename.WAL, number))
	info, err := wal.Inspect(s.FS, name, s.DBID, number)
	if err != nil {
		return nil, err
	}
	memory, err := arena.New(int(info.Bytes))
	if err != nil {
		return nil, err
	}
	p := &Chunk{memory: memory, Header: Header{Kind: Log, DBID: s.DBID, Epoch: s.Epoch, Number: number}}
	image := memory.Bytes()
	span := Span{Name: filename.Make(filename.WAL, number)}
	replayed, err := wal.Replay(s.FS, name, wal.ReplayOptions{DBID: s.DBID, Number: number, Image: image, Sealed: end}, span.Add)
	if err == nil && span.First == 0 {
		err = ErrEmpty
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.Range, p.From, p.To, p.Bytes = span.Range, span.From, span.To, replayed.Offset
	p.begin(bytes.NewReader(image[:replayed.Offset]), func() error { return nil })
	return p, nil
}

// Span collects the range and the Timestamps of records in their order.
type Span struct {
	Name string // of the file, for errors
	Range
	From, To edm.Ticks // 0 before the first entry
	// Until, if it is not 0, ends the span: Add returns ErrUntil for the first record with
	// a later Timestamp. End is where the records before it end, 0 if none is before it.
	Until edm.Ticks
	End   int64
}

// ErrUntil is the error of Span.Add for the first record that is too late.
var ErrUntil = errors.New("a record is too late")

// Add adds a record.
func (s *Span) Add(rec wal.RecordView) error {
	var from, to edm.Ticks
	for rest := rec.Payload; len(rest) > 0; {
		entry, n, err := codec.DecodeEntry(rest)
		if err != nil {
			return corrupt.Newf(s.Name, rec.PayloadOff, "entry: %v", err)
		}
		if entry.Kind != codec.KindShape {
			if from == 0 {
				from = entry.Timestamp
			}
			to = max(to, entry.Timestamp)
		}
		rest = rest[n:]
	}
	if s.Until != 0 && to > s.Until {
		return ErrUntil
	}
	if s.First == 0 {
		s.First, s.From = rec.FirstSeq, from
	}
	s.Last, s.To = rec.FirstSeq+uint64(rec.Count)-1, max(s.To, to)
	s.End = rec.PayloadOff + (int64(len(rec.Payload))+7)&^7
	return nil
}

// OpenLoad returns the chunk of the files in dir, which has a manifest that lists them and
// nothing else. The files are read, and verified, as the chunk is read.
func OpenLoad(ctx context.Context, s Source, dir string) (*Chunk, error) {
	m, err := manifest.Read(s.FS, dir)
	if err != nil {
		return nil, err
	}
	if len(m.Files) == 0 {
		return nil, corrupt.Newf(filename.Manifest, 0, "it lists no file")
	}
	seq, stamp := m.Files[0].MinSeq, edm.Ticks(m.Files[0].Stamp)
	p := &Chunk{Header: Header{
		Kind: Load, DBID: s.DBID, Epoch: s.Epoch, Range: Range{seq, seq}, From: stamp, To: stamp,
	}}
	payload, check, err := p.openFiles(ctx, s.FS, dir, m)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.begin(payload, check)
	return p, nil
}

// openFiles opens the manifest and the files.
func (p *Chunk) openFiles(ctx context.Context, fsys vfs.FS, dir string, m *manifest.Manifest) (io.Reader, func() error, error) {
	var readers []io.Reader
	open := func(name string) (size int64, err error) {
		f, err := fsys.Open(path.Join(dir, name))
		if err != nil {
			return 0, err
		}
		p.files = append(p.files, f)
		if size, err = f.Size(); err == nil {
			readers = append(readers, &contextReader{ctx, io.NewSectionReader(f, 0, size)})
			p.Bytes += size
		}
		return size, err
	}
	size, err := open(filename.Manifest)
	if err != nil {
		return nil, nil, err
	}
	p.Manifest, p.Number = size, m.NextFile-1
	sums := make([]*xxhash.Digest, len(m.Files))
	for i, f := range Files(m) {
		name := filename.Make(filename.SSTable, f.Number)
		if size, err = open(name); err != nil {
			return nil, nil, err
		}
		if size != f.Size {
			return nil, nil, corrupt.Newf(name, min(size, f.Size), "file of %d bytes, not %d", size, f.Size)
		}
		sums[i] = xxhash.New()
		readers[i+1] = io.TeeReader(readers[i+1], sums[i])
	}
	return io.MultiReader(readers...), func() error {
		for i, f := range Files(m) {
			if got := sums[i].Sum64(); got != f.Hash {
				return corrupt.Newf(filename.Make(filename.SSTable, f.Number), 0, "hash is %016x, the manifest has %016x", got, f.Hash)
			}
		}
		return nil
	}, nil
}

// Files returns the files of m in ascending order of their numbers.
func Files(m *manifest.Manifest) []manifest.File {
	files := slices.Clone(m.Files)
	slices.SortFunc(files, func(a, b manifest.File) int { return cmp.Compare(a.Number, b.Number) })
	return files
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c *contextReader) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// Reader reads an archived chunk. It verifies the sum.
type Reader struct {
	*Header
	name string
	r    io.Reader
	sum  *xxhash.Digest
	left int64 // of the payload
}

// NewReader reads the header of the chunk name.
func NewReader(name string, r io.Reader) (*Reader, error) {
	head := make([]byte, HeaderLen)
	if n, err := io.ReadFull(r, head); err != nil {
		return nil, short(name, int64(n), err)
	}
	h, err := decodeHeader(name, head)
	if err != nil {
		return nil, err
	}
	p := &Reader{Header: h, name: name, r: r, sum: xxhash.New(), left: h.Bytes}
	_, _ = p.sum.Write(head[headSumOff:]) // never fails
	return p, nil
}

// short returns the error of a chunk that ends at off.
func short(name string, off int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return corrupt.Newf(name, off, "the chunk is truncated")
	}
	return fmt.Errorf("read %s: %w", name, err)
}

// CopyTo writes the next n bytes of the payload to a new file and syncs it.
func (p *Reader) CopyTo(fsys vfs.FS, name string, n int64) error {
	f, err := fsys.Create(name)
	if err != nil {
		return err
	}
	err = p.copy(n, f.WriteAt)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// copy calls write with the next n bytes of the payload.
func (p *Reader) copy(n int64, write func(b []byte, off int64) (int, error)) error {
	if n > p.left {
		return corrupt.Newf(p.name, HeaderLen+p.Bytes, "its files are longer than the chunk")
	}
	buf := make([]byte, min(n, 1<<20))
	for off := int64(0); off < n; {
		k, err := io.ReadFull(p.r, buf[:min(int64(len(buf)), n-off)])
		p.left -= int64(k)
		if err != nil {
			return short(p.name, HeaderLen+p.Bytes-p.left, err)
		}
		_, _ = p.sum.Write(buf[:k]) // never fails
		if _, err := write(buf[:k], off); err != nil {
			return err
		}
		off += int64(k)
	}
	return nil
}

// Verify reads the rest of the chunk and verifies the sum.
func (p *Reader) Verify() error {
	err := p.copy(p.left, func(b []byte, _ int64) (int, error) { return len(b), nil })
	if err != nil {
		return err
	}
	return p.Finish()
}

// Finish verifies the sum after the whole payload was copied.
func (p *Reader) Finish() error {
	if p.left != 0 {
		return corrupt.Newf(p.name, HeaderLen+p.Bytes-p.left, "%d bytes of the payload belong to no file", p.left)
	}
	var want [sumLen + 1]byte
	n, err := io.ReadFull(p.r, want[:])
	switch {
	case err == nil:
		return corrupt.Newf(p.name, HeaderLen+p.Bytes+sumLen, "bytes after the end of the chunk")
	case n < sumLen:
		return short(p.name, HeaderLen+p.Bytes+int64(n), err)
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read %s: %w", p.name, err)
	}
	if got := p.sum.Sum64(); got != binary.LittleEndian.Uint64(want[:]) {
		return corrupt.Newf(p.name, HeaderLen+p.Bytes, "sum is %016x, want %016x", binary.LittleEndian.Uint64(want[:]), got)
	}
	return nil
}
