package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestStatsAddUp adds up the figures of the tables, of which one was created again and one has
// rows in the log.
func TestStatsAddUp(t *testing.T) {
	dir := t.TempDir()
	rows := "PartitionKey,RowKey,Text\np,1,one\np,2,two\n"
	for _, args := range []string{"table create First", "table delete First --yes", "import First - --format csv", "import Second - --format csv --mode merge"} {
		args := append(strings.Fields(args), "--data", dir, "-q")
		if code := run(t.Context(), args, strings.NewReader(rows), os.Stdout, os.Stderr); code != exitOK {
			t.Fatalf("%s exits with %d", args, code)
		}
	}
	var text strings.Builder
	if code := run(t.Context(), []string{"stats", "--data", dir}, nil, &text, os.Stderr); code != exitOK {
		t.Fatalf("stats exits with %d", code)
	}
	var stats struct {
		Entities      int64
		SSTableBytes  int64                             `json:"sstable_bytes"`
		MemtableBytes int64                             `json:"memtable_bytes"`
		OtherBytes    int64                             `json:"other_bytes"`
		Tables        []struct{ Entities, Bytes int64 } `json:"table_stats"`
	}
	if err := json.Unmarshal([]byte(text.String()), &stats); err != nil {
		t.Fatal(err)
	}
	entities, bytes := int64(0), stats.OtherBytes
	for _, table := range stats.Tables {
		entities, bytes = entities+table.Entities, bytes+table.Bytes
	}
	if entities != 4 || stats.Entities != entities || bytes != stats.SSTableBytes+stats.MemtableBytes {
		t.Errorf("the tables have %d entities and with other_bytes %d bytes: %s", entities, bytes, &text)
	}
}
