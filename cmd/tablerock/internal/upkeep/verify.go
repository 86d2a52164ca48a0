package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newVerify) }

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read and check every byte on disk",
		Long: `Read every byte on disk, compare it with its checksums and the rules of its format,
and print all damage. The command changes nothing. The exit code is 5 if it finds
damage.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var report engine.Report
			err := a.read(func(db *engine.DB) (err error) {
				if report, err = db.Verify(cmd.Context()); err == nil && len(report.Findings) == 0 {
					report.Entities, err = countEntities(cmd.Context(), db)
				}
				return err
			})
			var damage *store.CorruptError
			if errors.As(err, &damage) {
				// The database is too damaged to open. Report that as a finding.
				report.Findings = append(report.Findings, engine.Finding{File: damage.File, Offset: damage.Offset, What: damage.What})
				err = nil
			}
			if err != nil {
				return err
			}
			return a.printReport(&report)
		},
	}
}

// countEntities counts the entities of all tables exactly. Stats has an estimate, which
// includes overwritten entities until they are compacted.
func countEntities(ctx context.Context, db *engine.DB) (n int64, err error) {
	tables, err := db.Tables(ctx, "", 0)
	if err != nil {
		return 0, err
	}
	for _, t := range tables {
		c := db.Query(ctx, t.Name, store.Query{Select: []string{edm.PartitionKeyName}})
		for c.Next() {
			n++
		}
		if err := errors.Join(c.Err(), c.Close()); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// printReport prints the result of a verification.
func (a *app) printReport(r *engine.Report) error {
	columns := []string{"file", "offset", "what"}
	findings := []output.Record{}
	for _, f := range r.Findings {
		findings = append(findings, output.Record{{"file", f.File}, {"offset", f.Offset}, {"what", f.What}})
	}
	var err error
	switch a.output {
	case output.Table, output.CSV:
		if len(findings) > 0 || a.output == output.CSV {
			err = a.printer().List(columns, findings)
		}
	default:
		err = a.printer().Record(output.Record{{"files", r.Files}, {"bytes", r.Bytes}, {"entities", r.Entities}, {"findings", findings}})
	}
	if err != nil {
		return err
	}
	for _, name := range r.Unknown {
		a.note("%s is not a file of the database and was not checked", name)
	}
	if len(findings) == 0 {
		entities := formatCount(r.Entities) + " entities"
		if r.Entities == 1 {
			entities = "1 entity"
		}
		a.note("%s, %s, %s: no damage", formatPlural(int64(r.Files), "file"), formatSize(r.Bytes), entities)
		return nil
	}
	fmt.Fprintf(a.stderr, "tablerock: %s: %d damaged; restore a backup by \"tablerock restore\"\n", a.dir(), len(findings))
	return &quietError{exitCorrupt}
}
