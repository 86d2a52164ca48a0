package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newVerify) }

func newVerify(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read every byte on disk and check it",
		Long: `Read every byte on disk, hold it against its checksums and the rules of its
format, and print all damage. Nothing is changed. The exit code is 5 if there is
any damage.`,
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
				// Too damaged to be opened: that is the finding.
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

// countEntities counts those of all tables one by one. What Stats has is less
// exact: it counts what was written over until that is merged away.
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

// printReport prints what was found.
func (a *app) printReport(r *engine.Report) error {
	columns := []string{"file", "offset", "what"}
	findings := []record{}
	for _, f := range r.Findings {
		findings = append(findings, record{{"file", f.File}, {"offset", f.Offset}, {"what", f.What}})
	}
	var err error
	switch a.output {
	case formatTable, formatCSV:
		if len(findings) > 0 || a.output == formatCSV {
			err = a.printList(columns, findings)
		}
	default:
		err = a.printRecord(record{{"files", r.Files}, {"bytes", r.Bytes}, {"entities", r.Entities}, {"findings", findings}})
	}
	if err != nil {
		return err
	}
	for _, name := range r.Unknown {
		a.note("%s is not the database's; it is left alone", name)
	}
	if len(findings) == 0 {
		entities := formatCount(r.Entities) + " entities"
		if r.Entities == 1 {
			entities = "1 entity"
		}
		a.note("%s, %s, %s: no damage", formatPlural(int64(r.Files), "file"), formatSize(r.Bytes), entities)
		return nil
	}
	fmt.Fprintf(a.stderr, "tablerock: %s: %d damaged; restore the directory from a checkpoint\n", a.dir(), len(findings))
	return &quietError{exitCorrupt}
}
