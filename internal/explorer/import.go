package explorer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

const (
	maxChunkBytes = 8 << 20
	// chunkTime limits the time of a chunk, and idleTime that between two chunks.
	chunkTime = 5 * time.Minute
	idleTime  = 10 * time.Minute
	maxBad    = 20 // rows of Job.Bad
)

// upload is the file of an import, which arrives in chunks.
type upload struct {
	size     int64
	received atomic.Int64
	busy     atomic.Bool // a request sends a chunk
	w        io.Writer   // a pipe, or a file for Parquet
	end      func(error)
	complete chan struct{} // closed when all is received
	idle     *time.Timer   // ends the job; set by exchange.start
}

// importRequest is the body of POST api/import.
type importRequest struct {
	Account, Table, Name, Format, Compression, Mode string

	PartitionKey, RowKey, Delimiter string

	Size    int64
	SkipBad bool
}

// maxPages limits the memory for the pages of a Parquet file.
const maxPages = 64 << 20

// options checks the request.
func (in *importRequest) options() (read transfer.ReadOptions, o transfer.ImportOptions, err error) {
	read = transfer.ReadOptions{
		Name: in.Name, PartitionKey: in.PartitionKey, RowKey: in.RowKey, Delimiter: delimiterOf(in.Name, in.Format), PageBytes: maxPages,
	}
	read.Format, read.Compression, err = formatOf(in.Name, in.Format, in.Compression)
	if len(in.Delimiter) == 1 && in.Delimiter[0] < 0x80 && in.Delimiter != "\"" && in.Delimiter != "\n" && in.Delimiter != "\r" && in.Delimiter != "\x00" {
		read.Delimiter = in.Delimiter[0]
	} else if in.Delimiter != "" {
		err = errors.Join(err, badInput("The delimiter must be one ASCII character other than a quote or a line feed."))
	}
	modes := map[string]transfer.Mode{"": transfer.Replace, "replace": transfer.Replace, "merge": transfer.Merge, "insert": transfer.Insert}
	mode, ok := modes[in.Mode]
	if !ok {
		err = errors.Join(err, badInput("The mode must be replace, merge or insert."))
	}
	if in.Size < 0 {
		err = errors.Join(err, badInput("The size of the file is missing."))
	}
	o.Mode, o.SkipBad = mode, in.SkipBad
	return read, o, err
}

func (x *exchange) startImport() (any, error) {
	var in importRequest
	if err := x.read(&in); err != nil {
		return nil, err
	}
	read, o, err := in.options()
	if err != nil {
		return nil, err
	}
	action := sharedkey.Upsert
	if o.Mode == transfer.Insert {
		action = sharedkey.Insert
	}
	a, _, err := x.targetOf(in.Account, in.Table, action)
	if err != nil {
		return nil, err
	}
	o.TransactionBytes = a.TransactionBytes
	to := store.Store(&limited{a.Store, x})
	if x.s.SAS == "" {
		to, o.Load = a.Store, a.Load
	}
	up := &upload{size: in.Size, complete: make(chan struct{})}
	source := up.pipe()
	if read.Format == transfer.Parquet {
		if source, err = up.spool(x.h.jobs.files); err != nil {
			return nil, err
		}
	}
	d := Job{Kind: "import", Account: in.Account, Table: in.Table, Name: in.Name, Size: in.Size, Resumable: true}
	j, err := x.start(d, action, up, func(ctx context.Context, j *job) error {
		stop := context.AfterFunc(ctx, func() { up.end(context.Canceled) })
		defer stop()
		defer up.end(io.ErrClosedPipe)
		j.change(func(d *Job) { d.State = stateWaiting })
		rows, err := source(ctx, read)
		if err != nil {
			return err
		}
		j.change(func(d *Job) { d.State = stateRunning })
		return j.load(ctx, to, rows, o)
	})
	if err != nil {
		up.end(err)
		return nil, err
	}
	if in.Size == 0 {
		up.finish()
	}
	return started{Job: j.id}, nil
}

// source returns the reader of a file when it can be read.
type source func(context.Context, transfer.ReadOptions) (*transfer.Reader, error)

// pipe passes the chunks on as they arrive.
func (u *upload) pipe() source {
	r, w := io.Pipe()
	u.w = w
	u.end = func(err error) {
		if err == nil {
			err = io.EOF
		}
		_ = w.CloseWithError(err) // never fails
		if !errors.Is(err, io.EOF) {
			_ = r.CloseWithError(err)
		}
	}
	return func(_ context.Context, o transfer.ReadOptions) (*transfer.Reader, error) {
		return transfer.NewReader(r, o), nil
	}
}

// spool keeps a file of Parquet, whose index is at its end, until it is complete.
func (u *upload) spool(files *tempfile.Files) (source, error) {
	file, err := files.Create(u.size)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	u.w = &spool{file, failed}
	u.end = func(err error) {
		if err != nil {
			file.Close()
		}
	}
	return func(ctx context.Context, o transfer.ReadOptions) (*transfer.Reader, error) {
		select {
		case <-u.complete:
			return transfer.NewParquetReader(file, u.size, o), nil
		case err := <-failed:
			return nil, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}, nil
}

// spool writes to a file and reports the first error, which ends the import.
type spool struct {
	file   *tempfile.File
	failed chan error
}

func (s *spool) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if err != nil {
		select {
		case s.failed <- err:
		default:
		}
	}
	return n, err
}

// finish ends the file.
func (u *upload) finish() {
	u.idle.Stop()
	u.end(nil)
	close(u.complete)
}

// load imports the rows.
func (j *job) load(ctx context.Context, to store.Store, rows *transfer.Reader, o transfer.ImportOptions) error {
	o.Progress = func(p transfer.Progress) {
		j.change(func(d *Job) { d.Read, d.Rows, d.Skipped, d.Bytes = p.Read, p.Rows, p.Skipped, p.Bytes })
	}
	o.Bad = func(e *transfer.LineError) {
		j.change(func(d *Job) {
			if d.Skipped++; len(d.Bad) < maxBad {
				d.Bad = append(slices.Clone(d.Bad), e.Error())
			}
		})
	}
	_, remote := to.(store.Pinger)
	o.CheapReads = !remote
	p, err := transfer.Import(ctx, to, j.Table, rows, o) // +checklocksignore: the table does not change
	o.Progress(p)
	if line := (*transfer.LineError)(nil); errors.As(err, &line) {
		return Refuse(http.StatusBadRequest, "InvalidRow", line.Error())
	}
	if errors.Is(err, edm.ErrInvalid) { // the header, or the structure of the file
		return Refuse(http.StatusBadRequest, "InvalidFile", err.Error())
	}
	return err
}

func (x *exchange) importData() (any, error) {
	j, err := x.jobOf(x.r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	up := j.upload
	if up == nil || !j.isRunning() {
		return nil, Refuse(http.StatusConflict, "NotRunning", "This import has ended.")
	}
	offset, err := x.number("offset", -1, 0, up.size)
	if err != nil {
		return nil, err
	}
	if !up.busy.CompareAndSwap(false, true) {
		return nil, Refuse(http.StatusConflict, "ChunkUnderWay", "Another chunk of this file is under way.")
	}
	defer up.busy.Store(false)
	if got := up.received.Load(); offset != got {
		return nil, Refuse(http.StatusConflict, "WrongOffset", fmt.Sprintf("The next chunk begins at %d.", got))
	}
	if offset == up.size { // complete: the answer to the last chunk was lost
		return map[string]int64{"received": offset}, nil
	}
	up.idle.Reset(idleTime)
	_ = http.NewResponseController(x.w).SetReadDeadline(x.h.o.Now().Add(chunkTime)) // without it the server's own limit counts
	body := http.MaxBytesReader(x.w, x.r.Body, min(maxChunkBytes, up.size-offset))
	n, err := io.Copy(up.w, body)
	if up.received.Add(n) == up.size { // what follows in this request does not count
		up.finish()
	}
	long := (*http.MaxBytesError)(nil)
	own := errors.Is(err, tempfile.ErrFull) || errors.Is(err, tempfile.ErrLimit) || errors.As(err, &long) // this chunk may have ended the import
	if err != nil && !own && !j.isRunning() || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, os.ErrClosed) {
		return nil, Refuse(http.StatusConflict, "NotRunning", "This import has ended.")
	}
	return map[string]int64{"received": up.received.Load()}, err
}

// limited is a store of a session that may not do everything.
type limited struct {
	store.Store
	x *exchange
}

// CreateTable refuses a session that may not create tables. For one that may, it is that of
// the store; a table that exists is no reason to refuse.
func (l *limited) CreateTable(ctx context.Context, table string) error {
	if err := l.x.allow(sharedkey.CreateTable, table); err != nil {
		if _, missing := l.TableMeta(ctx, table); missing == nil || errors.Is(missing, errors.ErrUnsupported) {
			return store.ErrTableExists
		}
		return err
	}
	return l.Store.CreateTable(ctx, table)
}

// Apply refuses operations on keys that the session does not cover.
func (l *limited) Apply(ctx context.Context, table string, ops ...store.Op) ([]store.Result, error) {
	for i := range ops {
		if err := l.x.s.Grant.AllowKey(ops[i].Entity.Key); err != nil {
			return nil, err
		}
	}
	return l.Store.Apply(ctx, table, ops...)
}
