package explorer

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/jobs"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// formats has the formats of files by name.
var formats = map[string]transfer.Format{
	"csv": transfer.CSV, "tsv": transfer.CSV, "jsonl": transfer.JSONL, "json": transfer.JSON, "parquet": transfer.Parquet,
}

var compressions = map[string]transfer.Compression{"": transfer.Uncompressed, "gz": transfer.Gzip, "zst": transfer.Zstandard}

var exporters = map[transfer.Format]func(context.Context, transfer.Querier, string, store.Query, io.Writer, transfer.ExportOptions) (int64, error){
	transfer.CSV: transfer.ExportCSV, transfer.JSONL: transfer.ExportJSONL, transfer.JSON: transfer.ExportJSON, transfer.Parquet: transfer.ExportParquet,
}

// formatOf returns the format and the compression of a file.
func formatOf(name, format, compression string) (f transfer.Format, c transfer.Compression, err error) {
	f, c = transfer.FormatOf(name)
	if format != "" {
		f = formats[format]
	}
	if compression != "" {
		var ok bool
		if c, ok = compressions[compression]; !ok {
			return f, c, badInput("There is no compression of this name: choose gz or zst.")
		}
	}
	if f == 0 {
		return f, c, badInput("The name of the file does not tell its format: choose csv, tsv, jsonl, json or parquet.")
	}
	if f == transfer.Parquet && c != transfer.Uncompressed {
		return f, c, badInput("Parquet is compressed by itself.")
	}
	return f, c, nil
}

// delimiterOf returns the delimiter of a file, which counts for CSV.
func delimiterOf(name, format string) byte {
	if format != "" {
		name = "." + format
	}
	return transfer.DelimiterOf(name)
}

// maxFileBytes limits the temporary files: of exports until their session ends, and of imports
// of Parquet.
const maxFileBytes = 16 << 30

// startExport serves POST api/export. The file is made here first, so that its download has
// a length and can be continued.
func (x *exchange) startExport() (any, error) {
	var in struct{ Account, Table, Filter, Select, Name, Format, Compression string }
	if err := x.read(&in); err != nil {
		return nil, err
	}
	a, _, err := x.targetOf(in.Account, in.Table, sharedkey.Query)
	if err != nil {
		return nil, err
	}
	q, err := x.queryOf(in.Filter, in.Select)
	if err != nil {
		return nil, err
	}
	format, compression, err := formatOf(in.Name, in.Format, in.Compression)
	if err != nil {
		return nil, err
	}
	o := transfer.ExportOptions{Delimiter: delimiterOf(in.Name, in.Format)}
	j, err := x.start(sharedkey.Query, jobs.Task{
		Status: jobs.Status{Kind: "export", Account: in.Account, Table: in.Table, Name: in.Name, Resumable: true},
		Work: func(ctx context.Context, j *jobs.Job) error {
			return x.h.export(ctx, j, a, in.Table, q, o, format, compression)
		},
	})
	if err != nil {
		return nil, err
	}
	return started{Job: j.ID, URL: Root + "api/export/file?" + url.Values{"id": {j.ID}}.Encode()}, nil
}

// export writes the file of the job.
func (h *Handler) export(
	ctx context.Context, j *jobs.Job, a *Account, table string, q store.Query, o transfer.ExportOptions, f transfer.Format, c transfer.Compression,
) (err error) {
	var src transfer.Querier = a.Store
	if a.Snapshot != nil {
		snapshot, release, err := a.Snapshot()
		if err != nil {
			return err
		}
		defer release()
		src = snapshot
	}
	file, err := h.files.Create(0)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	z, err := transfer.NewCompressor(file, c)
	if err != nil {
		return err
	}
	o.Progress = func(rows, _ int64) { j.Change(func(d *jobs.Status) { d.Rows, d.Bytes = rows, file.Size() }) }
	rows, err := exporters[f](ctx, src, table, q, z, o)
	if err := errors.Join(err, z.Close()); err != nil {
		return err
	}
	j.SetFile(file, rows)
	return nil
}

func (x *exchange) exportFile() (any, error) {
	j, err := x.jobOf(x.r.URL.Query().Get("id"))
	if err != nil {
		return nil, err
	}
	file, of := j.File(), j.Status()
	if file == nil {
		return nil, Refuse(http.StatusConflict, "NotReady", "The file of this job is not ready.")
	}
	h := x.w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": of.Name}))
	h.Set("Etag", `"`+j.ID+`"`)
	// Readers of one file have offsets of their own.
	http.ServeContent(x.w, x.r, "", time.Time{}, &checkedReader{io.NewSectionReader(file, 0, of.Size), x, of.Table, x.h.o.Now()})
	return answered{}, nil
}

// checkedReader fails when the session of a download may not read the table any more.
type checkedReader struct {
	io.ReadSeeker
	x     *exchange
	table string
	next  time.Time // of a check
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if now := c.x.h.o.Now(); !now.Before(c.next) {
		if err := c.x.h.recheck(c.x.r, c.x.s, sharedkey.Query, c.table); err != nil {
			return 0, err
		}
		c.next = now.Add(eventTime)
	}
	return c.ReadSeeker.Read(p)
}
