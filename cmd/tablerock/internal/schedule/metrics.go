package schedule

import (
	"fmt"
	"io"
	"strconv"

	vm "github.com/VictoriaMetrics/metrics"
)

// metrics are the metrics without labels.
var metrics = []struct {
	name, kind, help string
	value            func(*Backups) float64 // called with the lock
}{
	{"made_total", "counter", "Backups of an account that were made.", func(b *Backups) float64 { return float64(b.made) }},
	{"failures_total", "counter", "Backups of an account that failed.", func(b *Backups) float64 { return float64(b.failed) }},
	{"copied_bytes_total", "counter", "Bytes that backups copied; hard links are none.", func(b *Backups) float64 { return float64(b.copied) }},
	{"interval_seconds", "gauge", "Time from one backup to the next.", func(b *Backups) float64 { return b.Every.Seconds() }},
	{"last_duration_seconds", "gauge", "Time that the last backup of all accounts took.", func(b *Backups) float64 { return b.took.Seconds() }},
}

const newestBackup = "tablerock_backup_last_success_timestamp_seconds"

// Help returns the help texts of the metrics by their names.
func Help() map[string]string {
	texts := map[string]string{newestBackup: "Unix time of the newest backup of the account, 0 without one."}
	for _, f := range metrics {
		texts["tablerock_backup_"+f.name] = f.help
	}
	return texts
}

// WriteMetrics writes the metrics in the text format of Prometheus, none without a backup
// directory.
func (b *Backups) WriteMetrics(w io.Writer) {
	if b.writer == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range metrics {
		vm.WriteMetadataIfNeeded(w, "tablerock_backup_"+f.name, f.kind)
		fmt.Fprintf(w, "tablerock_backup_%s %s\n", f.name, strconv.FormatFloat(f.value(b), 'g', -1, 64))
	}
	vm.WriteMetadataIfNeeded(w, newestBackup, "gauge")
	for account, at := range b.newest {
		fmt.Fprintf(w, "%s{account=%q} %d\n", newestBackup, account, max(0, at.Unix()))
	}
}
