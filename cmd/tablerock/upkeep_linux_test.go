package main

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/internal/race"
)

// drawing matches a bar: its name, the bytes done and all bytes.
var drawing = regexp.MustCompile(`\r([a-z]+)[a-z0-9 ]* [0-9.]+ (?:bytes|KiB|MiB) / ([0-9.]+) (?:bytes|KiB|MiB)`)

// importLarge makes a database of several files, which takes some time to read.
func importLarge(t *testing.T, data string) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var rows strings.Builder
	rows.WriteString("PartitionKey,RowKey,Text\n")
	text, n := make([]byte, 1000), 10_000
	if race.Enabled { // it reads slowly
		n = 3000
	}
	for i := range n {
		for j := range text {
			text[j] = byte('0' + r.IntN(75)) // neither a quote nor a comma
		}
		rows.WriteString("p," + strconv.Itoa(i) + "," + string(text) + "\n")
	}
	file := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(file, []byte(rows.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"replace", "merge"} {
		if code := run(t.Context(), []string{"import", "Rows", file, "--mode", mode, "--data", data, "-q"}, nil, io.Discard, os.Stderr); code != exitOK {
			t.Fatalf("import exits with %d", code)
		}
	}
}

// TestProgressOfUpkeep runs commands that can take minutes on a terminal, where they draw the
// bytes that are done of all, and with --quiet, where they print nothing.
func TestProgressOfUpkeep(t *testing.T) {
	before := progress.Interval
	progress.Interval = time.Millisecond
	t.Cleanup(func() { progress.Interval = before })
	dir := t.TempDir()
	data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "saved")
	importLarge(t, data)
	other, err := os.MkdirTemp("/dev/shm", "tablerock-") // a checkpoint on another file system copies
	if err != nil {
		t.Skipf("no other file system: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(other) })
	for _, c := range []struct{ name, args string }{
		{"verify", "verify --data " + data},
		{"checkpoint", "checkpoint " + other + "/copy --data " + data},
		{"backup", "backup create " + saved + " --data " + data},
		{"verify", "backup verify " + saved},
		{"restore", "restore " + saved + " " + dir + "/restored"},
		{"compact", "compact --data " + data},
		{"verify", "compact --data " + data}, // of files that need no rewrite
	} {
		term := openTerminal(t)
		ended := make(chan int, 1)
		go func() {
			ended <- run(t.Context(), strings.Fields(c.args), nil, io.Discard, term.slave)
			term.slave.Close()
		}()
		var text []byte
		for part := range term.written {
			text = append(text, part...)
		}
		code := <-ended
		found := false
		for _, m := range drawing.FindAllSubmatch(text, -1) {
			found = found || string(m[1]) == c.name
		}
		if code != exitOK || !found {
			t.Errorf("%s: exit code %d, and no bar %q of bytes in %q", c.args, code, c.name, text)
		}
	}
}

// TestInterruptedUpkeep interrupts commands. Each says what it leaves.
func TestInterruptedUpkeep(t *testing.T) {
	dir := t.TempDir()
	data, saved := filepath.Join(dir, "data"), filepath.Join(dir, "saved")
	rows := "PartitionKey,RowKey\np,1\np,2\n"
	for _, args := range [][]string{{"import", "Rows", "-", "--format", "csv", "--data", data, "-q"}, {"backup", "create", saved, "--data", data, "-q"}} {
		if code := run(t.Context(), args, strings.NewReader(rows), io.Discard, os.Stderr); code != exitOK {
			t.Fatalf("%s exits with %d", args, code)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "half.restoring"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for args, want := range map[string]string{
		"verify --data data":                       "the check is not complete, and nothing is changed",
		"compact --data data":                      "the files that were finished stay compacted, and the same command goes on",
		"checkpoint dest --data data":              "nothing is copied",
		"backup create saved --data data":          "the unfinished backup does not exist, and the same command goes on where it ended",
		"backup verify saved":                      "the check is not complete, and nothing is changed",
		"restore saved new":                        "nothing is restored",
		"restore saved half":                       "half.restoring is unfinished: the same command goes on, or remove it",
		"copy --from data --to other":              "nothing is copied",
		"copy --from data --to other Rows --quiet": "nothing is copied",
	} {
		var stderr strings.Builder
		code := run(over, strings.Fields(args), nil, io.Discard, &stderr)
		if code != exitInterrupted || stderr.String() != "tablerock: interrupted; "+want+"\n" {
			t.Errorf("%s: exit code %d and %q, want %q", args, code, &stderr, want)
		}
	}
}

// TestCheckpointOfDamage copies a damaged file to another file system. The command says that it
// leaves a part of the copy, which would refuse the next try.
func TestCheckpointOfDamage(t *testing.T) {
	other, err := os.MkdirTemp("/dev/shm", "tablerock-")
	if err != nil {
		t.Skip(err)
	}
	defer os.RemoveAll(other)
	data, dest := filepath.Join(t.TempDir(), "data"), filepath.Join(other, "copy")
	importLarge(t, data)
	files, err := filepath.Glob(filepath.Join(data, "*", "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	damaged := 0
	for _, name := range files {
		b := read(t, name)
		if len(b) < 1<<20 {
			continue // of the catalog
		}
		// A compaction meanwhile can drop a file whose rows are all replaced, but not every file.
		b[len(b)/2] ^= 1
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
		damaged++
	}
	if damaged == 0 {
		t.Fatalf("files %v", files)
	}
	var stderr strings.Builder
	code := run(t.Context(), []string{"checkpoint", dest, "--data", data}, nil, io.Discard, &stderr)
	if code != exitCorrupt || !strings.Contains(stderr.String(), dest+" is unfinished and not a database: remove it before the next try") {
		t.Errorf("exit code %d and %q", code, &stderr)
	}
}

func read(t *testing.T, name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
