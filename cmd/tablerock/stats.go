package main

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/engine"
)

func init() { commands = append(commands, newStats) }

func newStats(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Print statistics of the database",
		Long: `Print statistics of the database. The number of entities is an estimate if entities
were overwritten or deleted, until their files are compacted in the background or by
"tablerock compact". "tablerock verify" counts exactly.`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return a.read(func(db *engine.DB) error {
				s, err := db.Stats()
				if err != nil {
					return err
				}
				if s.RunsMax > 1 || s.RunsMax == 1 && s.WALBytes > 0 {
					a.note(`the number of entities is an estimate until "tablerock compact"; "tablerock verify" counts exactly`)
				}
				return a.printer().Record(output.Record{
					{"tables", s.Tables},
					{"entities", s.Entities},
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
