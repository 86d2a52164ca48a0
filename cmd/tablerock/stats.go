package main

import (
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

func init() { commands = append(commands, newStats) }

func newStats(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Print statistics of the database",
		Long: `Print statistics of the database and of each table, without reading their rows. A number
of entities is an estimate unless it is marked as exact: entities that were overwritten
or deleted can count until their files are compacted in the background or by "tablerock
compact". "tablerock count" counts a table. entities is the sum of all tables.

The bytes of the tables and the other bytes are sstable_bytes and memtable_bytes together.
The other bytes are the names of the tables, dropped tables until a compaction, and memory
without rows. wal_bytes are a part of memtable_bytes.

In PostgreSQL (--backend) the number of entities and the sizes are estimates, of all
accounts in the database.`,
		Args: arguments(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.server != nil {
				return a.useServer(func(s store.Store) error {
					r, err := pgbackend.Figures(cmd.Context(), s)
					if err != nil {
						return err
					}
					return a.printer().Record(r)
				})
			}
			return a.read(func(db *engine.DB) error {
				s, err := db.Stats()
				if err != nil {
					return err
				}
				if s.RunsMax > 1 || s.RunsMax == 1 && s.WALBytes > 0 {
					a.note(`the number of entities is an estimate until "tablerock compact"; "tablerock verify" counts exactly`)
				}
				tables, err := db.TableStats(cmd.Context())
				if err != nil {
					return err
				}
				entities, other := int64(0), s.SSTableBytes+s.MemtableBytes
				for _, t := range tables {
					entities, other = entities+t.Entities, other-t.Bytes
				}
				return a.printStats(tables, max(0, other), output.Record{ // a writer may have changed the tables since Stats
					{"tables", s.Tables},
					{"entities", entities},
					{"sstables", s.SSTables},
					{"sstable_bytes", s.SSTableBytes},
					{"wal_bytes", s.WALBytes},
					{"memtable_bytes", s.MemtableBytes},
					{"last_sequence", s.LastSequence},
					{"runs_max", s.RunsMax},
					{"space_amp", math.Round(s.SpaceAmp*1000) / 1000},
				})
			})
		},
	}
}

// printStats prints the figures of a database, and those of its tables: as a second table, or
// as the member table_stats. other is the number of bytes that belong to no table.
func (a *app) printStats(tables []store.TableStats, other int64, r output.Record) error {
	list := []output.Record{}
	for _, t := range tables {
		list = append(list, output.Record{{"table", t.Name}, {"entities", t.Entities}, {"exact", t.Exact}, {"bytes", t.Bytes}})
	}
	if a.output != output.Table {
		return a.printer().Record(append(r, output.Field{Name: "other_bytes", Value: other}, output.Field{Name: "table_stats", Value: list}))
	}
	if err := a.printer().Record(r); err != nil || len(list) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(a.stdout); err != nil {
		return err
	}
	list = append(list, output.Record{{"table", "(other)"}, {"entities", 0}, {"exact", true}, {"bytes", other}})
	return a.printer().List(list[0].Names(), list)
}
