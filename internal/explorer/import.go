package explorer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/explorer/internal/upload"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

const (
	maxChunkBytes = 8 << 20
	chunkTime     = 5 * time.Minute // limits the time of a chunk
	maxBad        = 20              // rows of Job.Bad
)

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
	up := upload.New(in.Size)
	if read.Format == transfer.Parquet {
		if up, err = upload.NewParquet(in.Size, x.h.files); err != nil {
			return nil, err
		}
	}
	j, err := x.start(action, jobs.Task{
		Status: jobs.Status{Kind: "import", Account: in.Account, Table: in.Table, Name: in.Name, Size: in.Size, Resumable: true},
		Upload: up,
		Work: func(ctx context.Context, j *jobs.Job) error {
			stop := context.AfterFunc(ctx, up.End)
			defer stop()
			defer up.End()
			j.Change(func(d *jobs.Status) { d.State = jobs.Waiting })
			rows, err := up.Open(ctx, read)
			if err != nil {
				return err
			}
			j.Change(func(d *jobs.Status) { d.State = jobs.Running })
			return load(ctx, j, to, in.Table, rows, o)
		},
	})
	if err != nil {
		up.End()
		return nil, err
	}
	return started{Job: j.ID}, nil
}

// load imports the rows and reports the progress as that of the job.
func load(ctx context.Context, j *jobs.Job, to store.Store, table string, rows *transfer.Reader, o transfer.ImportOptions) error {
	o.Progress = func(p transfer.Progress) {
		j.Change(func(d *jobs.Status) { d.Read, d.Rows, d.Skipped, d.Bytes = p.Read, p.Rows, p.Skipped, p.Bytes })
	}
	o.Bad = func(e *transfer.LineError) {
		j.Change(func(d *jobs.Status) {
			if d.Skipped++; len(d.Bad) < maxBad {
				d.Bad = append(slices.Clone(d.Bad), e.Error())
			}
		})
	}
	_, remote := to.(store.Pinger)
	o.CheapReads = !remote
	p, err := transfer.Import(ctx, to, table, rows, o)
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
	up := j.Upload
	if up == nil || !j.IsRunning() {
		return nil, errNotRunning
	}
	offset, err := x.number("offset", -1, 0, up.Size())
	if err != nil {
		return nil, err
	}
	err = up.Receive(offset, func() io.Reader {
		_ = http.NewResponseController(x.w).SetReadDeadline(x.h.o.Now().Add(chunkTime)) // without it the server's own limit counts
		return http.MaxBytesReader(x.w, x.r.Body, min(maxChunkBytes, up.Size()-offset))
	})
	if err != nil {
		return nil, chunkError(err, j.IsRunning())
	}
	return map[string]int64{"received": up.Received()}, nil
}

var errNotRunning = Refuse(http.StatusConflict, "NotRunning", "This import has ended.")

// chunkError returns the response to an error of upload.Upload.Receive. The import may have ended
// because of this chunk, which then gets the reason.
func chunkError(err error, running bool) error {
	other, long := (*upload.OffsetError)(nil), (*http.MaxBytesError)(nil)
	switch {
	case errors.Is(err, upload.ErrBusy):
		return Refuse(http.StatusConflict, "ChunkUnderWay", "Another chunk of this file is under way.")
	case errors.As(err, &other):
		return Refuse(http.StatusConflict, "WrongOffset", fmt.Sprintf("The next chunk begins at %d.", other.Next))
	case errors.Is(err, tempfile.ErrFull) || errors.Is(err, tempfile.ErrLimit) || errors.As(err, &long):
		return err
	case !running || errors.Is(err, upload.ErrEnded):
		return errNotRunning
	}
	return err
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
