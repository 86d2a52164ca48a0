package summary

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/feature"
	"github.com/tablerock-db/tablerock/internal/manifest"
)

// Manifest returns the summary of a manifest, and those of the logs and files that it lists.
func Manifest(m *manifest.Manifest) (head output.Record, logs, files []output.Record) {
	logs, files = []output.Record{}, []output.Record{}
	for _, l := range m.Logs {
		logs = append(logs, output.Record{{"number", l.Number}, {"sealed", l.Sealed}, {"proven", l.Proven}})
	}
	for i := range m.Files {
		f := &m.Files[i]
		tier := strconv.FormatUint(uint64(f.Tier), 10)
		if f.Tier == manifest.BottomTier {
			tier = "bottom"
		}
		r := output.Record{
			{"number", f.Number},
			{"tier", tier},
			{"run", f.Run},
			{"bytes", f.Size},
			{"entries", f.Entries},
			{"tombstones", f.Tombstones},
			{"new_keys", float64(f.NewKeys) / manifest.AllNewKeys},
			{"min_sequence", f.MinSeq},
			{"max_sequence", f.MaxSeq},
			{"smallest", showKey(f.Smallest)},
			{"largest", showKey(f.Largest)},
			{"origin", hex.EncodeToString(f.Origin[:])},
		}
		if f.Stamp != 0 {
			r = append(r, output.Field{Name: "loaded_at", Value: edm.Ticks(f.Stamp).String()})
		}
		files = append(files, r)
	}
	return output.Record{
		{"kind", "manifest"},
		{"version", m.Version},
		{"database", hex.EncodeToString(m.DBID[:])},
		{"format", m.Format()},
		{"next_file", m.NextFile},
		{"high_water", edm.Ticks(m.HighWater).String()},
		{"last_sequence", m.LastSeq},
		{"epoch", m.Epoch},
		{"required_features", feature.Names(m.Extensions, m.Required)},
		{"optional_features", fmt.Sprintf("%#x", m.Optional)},
		{"extension_bytes", len(m.Extensions)},
	}, logs, files
}
