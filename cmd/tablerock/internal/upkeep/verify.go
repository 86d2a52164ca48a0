package upkeep

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/bulk"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// Verify returns "verify".
func (e *Env) Verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read and check every byte on disk",
		Long: `Read every byte on disk, compare it with its checksums and the rules of its format,
and print all damage. The command changes nothing. The exit code is 5 if it finds
damage. The number of entities is counted if there is none, and otherwise an estimate,
with "exact":false.`,
		Args: e.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var report engine.Report
			opened := false
			err := e.Read(func(db *engine.DB) (err error) {
				opened = true
				if report, err = e.check(cmd.Context(), db); err == nil && len(report.Findings) == 0 {
					report.Entities, err = e.count(cmd.Context(), db)
				}
				return hint.Interrupted(err, "the check is not complete, and nothing is changed")
			})
			exact := err == nil && len(report.Findings) == 0
			var damage *store.CorruptError
			if errors.As(err, &damage) {
				// The database is too damaged to open. Report that as a finding.
				report.Findings = append(report.Findings, engine.Finding{File: damage.File, Offset: damage.Offset, What: damage.What})
				err = nil
			}
			if err != nil && len(report.Findings) == 0 {
				return err
			}
			damaged := e.printReport(&report, opened, exact)
			return cmp.Or(err, damaged)
		},
	}
}

// check verifies a database and shows the progress.
func (e *Env) check(ctx context.Context, db *engine.DB) (engine.Report, error) {
	var bar *progress.Bar
	defer func() { bar.Done() }()
	return db.VerifyWithProgress(ctx, func(done, total int64) {
		if bar == nil {
			bar = e.Bytes("verify", total)
		}
		bar.Set(0, done)
	})
}

// count counts the entities of all tables exactly. Stats has an estimate, which includes
// overwritten entities until they are compacted.
func (e *Env) count(ctx context.Context, db *engine.DB) (n int64, err error) {
	bar := e.Rows("count")
	defer bar.Done()
	tables, err := db.Tables(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, t := range tables {
		rows, err := bulk.Count(ctx, db, t.Name, store.Query{}, func(rows int64) { bar.Set(n+rows, 0) })
		if err != nil {
			return 0, err
		}
		n += rows
	}
	return n, nil
}

// printReport prints the result of a verification. opened says that the database could be
// opened, exact that the entities were counted.
func (e *Env) printReport(r *engine.Report, opened, exact bool) error {
	columns := []string{"file", "offset", "what"}
	findings := []output.Record{}
	var damaged []string
	for _, f := range r.Findings {
		findings = append(findings, output.Record{{"file", f.File}, {"offset", f.Offset}, {"what", f.What}})
		damaged = append(damaged, f.File)
	}
	var err error
	p := e.Printer()
	switch p.Format {
	case output.Table, output.CSV:
		if len(findings) > 0 || p.Format == output.CSV {
			err = p.List(columns, findings)
		}
	default:
		err = p.Record(output.Record{{"files", r.Files}, {"bytes", r.Bytes}, {"entities", r.Entities}, {"exact", exact}, {"findings", findings}})
	}
	if err != nil {
		return err
	}
	for _, name := range r.Unknown {
		e.Note("%s is not a file of the database and was not checked", name)
	}
	if len(findings) == 0 {
		e.Note("%s, %s, %s: no damage", quantity.Plural(int64(r.Files), "file"), quantity.Bytes(r.Bytes), quantity.Plural(r.Entities, "entity"))
		return nil
	}
	next := hint.Restore // no command can repair a database that cannot be opened
	if opened {
		next = hint.Damaged(damaged...)
	}
	fmt.Fprintf(e.Stderr, "tablerock: %s: %d damaged; %s\n", e.Dir(), len(findings), next)
	return e.Damaged
}
