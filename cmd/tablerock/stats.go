package main

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/engine"
)

func init() { commands = append(commands, newStats) }

func newStats(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "stats",
		Short: "Print figures of the database",
		Long: `Print figures of the database. Entities that were written over or deleted can
count until their files are merged, of themselves or by "tablerock compact";
"tablerock verify" counts exactly.`,
		Args: arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return a.read(func(db *engine.DB) error {
				s, err := db.Stats()
				if err != nil {
					return err
				}
				if s.RunsMax > 1 || s.RunsMax == 1 && s.WALBytes > 0 {
					a.note(`entities may count more than there are until "tablerock compact"; "tablerock verify" counts exactly`)
				}
				return a.printRecord(record{
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
