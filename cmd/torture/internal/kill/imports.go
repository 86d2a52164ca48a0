package kill

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// ImportOptions configures Imports.
type ImportOptions struct {
	// Program is the tablerock program. It has no default.
	Program string
	// Dir is the directory for files. It has no default.
	Dir string
	// Seed determines the delays. The default is seed 0.
	Seed uint64
	// Cycles limits the number of killed imports. The default is none.
	Cycles int
	// Longest is the longest run time of an import. It has no default.
	Longest time.Duration
}

// importLines is the number of lines of the input.
const importLines = 20_000

// Imports runs the import of a generated file and kills it, Cycles times, on a new database
// every eighth time. Then it runs an import to its end and compares the export with the
// input. It returns the number of imports that were killed before their end.
func Imports(ctx context.Context, o ImportOptions) (killed int, err error) {
	input := filepath.Join(o.Dir, "input.jsonl")
	lines, err := writeInput(input)
	if err != nil {
		return 0, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x696d706f))
	data := ""
	for cycle := range o.Cycles {
		if cycle%8 == 0 {
			data = filepath.Join(o.Dir, fmt.Sprintf("import%d", cycle))
		}
		acks := filepath.Join(data+".acks", fmt.Sprint(cycle))
		if err := os.MkdirAll(filepath.Dir(acks), 0o700); err != nil {
			return killed, err
		}
		ended, err := o.run(ctx, time.Duration(1+rng.Int64N(int64(o.Longest))), data, "import", "Kills", input, "--ack", acks)
		if err != nil {
			return killed, err
		}
		if !ended {
			killed++
		}
		if err := checkImport(ctx, data, acks, lines); err != nil {
			return killed, fmt.Errorf("cycle %d: %w", cycle, err)
		}
	}
	if data == "" {
		return 0, nil
	}
	if _, err := o.run(ctx, 0, data, "import", "Kills", input); err != nil {
		return killed, err
	}
	output := filepath.Join(o.Dir, "output.jsonl")
	if _, err := o.run(ctx, 0, data, "export", "Kills", output); err != nil {
		return killed, err
	}
	return killed, compareFiles(input, output)
}

// run runs the program and kills it after a time, unless that is 0.
func (o ImportOptions) run(ctx context.Context, after time.Duration, data string, args ...string) (ended bool, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if after > 0 {
		limited, cancel = context.WithTimeout(ctx, after)
	}
	defer cancel()
	cmd := exec.CommandContext(limited, o.Program, append(args, "--data", data, "--quiet")...)
	output, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil:
		return true, nil
	case limited.Err() != nil:
		return false, nil
	}
	return false, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, output)
}

// writeInput writes the input: entities with properties of every type in the order of their
// keys, as in an export.
func writeInput(name string) (keys []edm.Key, err error) {
	var b bytes.Buffer
	for n := range importLines {
		k := edm.Key{Partition: fmt.Sprintf("%05d", n/37), Row: fmt.Sprintf("%07d", n)}
		keys = append(keys, k)
		fmt.Fprintf(&b, `{"PartitionKey":%q,"RowKey":%q,"S":"text %d","B@odata.type":"Edm.Binary","B":"AAEC","F":%v,"I":%d,`+
			`"L@odata.type":"Edm.Int64","L":"%d","D":%d.5,`+
			`"T@odata.type":"Edm.DateTime","T":"2024-02-03T04:05:06.%07dZ","G@odata.type":"Edm.Guid","G":"00000000-0000-0000-0000-%012d"}`+"\n",
			k.Partition, k.Row, n, n%2 == 0, n, int64(n)<<33, n, n*10+1, n)
	}
	return keys, os.WriteFile(name, b.Bytes(), 0o600)
}

// checkImport compares a database with the acknowledgements of one import.
func checkImport(ctx context.Context, data, acks string, keys []edm.Key) error {
	db, err := engine.Open(filepath.Join(data, "devstoreaccount1"), engine.Options{ReadOnly: true, CacheBytes: 8 << 20})
	if errors.Is(err, os.ErrNotExist) {
		if lines, _ := os.ReadFile(acks); bytes.Contains(lines, []byte("\n")) {
			return errors.New("there are acknowledgements but no database")
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("open after a kill: %w", err)
	}
	defer db.Close()
	there := map[edm.Key]bool{}
	for e, err := range store.Entities(db.Query(ctx, "Kills", store.Query{})) {
		if errors.Is(err, store.ErrTableNotFound) {
			break
		}
		if err != nil {
			return fmt.Errorf("query: %w", err)
		}
		there[e.Key] = true
	}
	// Adjacent entities of one partition are one transaction, because there are few.
	for from := 0; from < len(keys); {
		to := from
		for to < len(keys) && keys[to].Partition == keys[from].Partition {
			if there[keys[to]] != there[keys[from]] {
				return fmt.Errorf("the transaction from line %d on is incomplete", from+1)
			}
			to++
		}
		from = to
	}
	return acknowledged(acks, func(line int) error {
		if line < 1 || line > len(keys) || !there[keys[line-1]] {
			return fmt.Errorf("line %d was acknowledged and is missing", line)
		}
		return nil
	})
}

// acknowledged calls check with each acknowledged line.
func acknowledged(acks string, check func(line int) error) error {
	f, err := os.Open(acks)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil // ignore an incomplete last line
		}
		var ack struct{ First, Last int }
		if err := json.Unmarshal(line, &ack); err != nil {
			return fmt.Errorf("acknowledgement %q: %w", line, err)
		}
		for n := ack.First; n <= ack.Last; n++ {
			if err := check(n); err != nil {
				return err
			}
		}
	}
}

// compareFiles compares two files of entities line by line, without the Timestamps.
func compareFiles(input, output string) error {
	want, err := readLines(input)
	if err != nil {
		return err
	}
	got, err := readLines(output)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("the export has %d lines, the input %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			return fmt.Errorf("line %d of the export is %s, want %s", i+1, got[i], want[i])
		}
	}
	return nil
}

// readLines returns the entities of a file as JSON with sorted names.
func readLines(name string) ([]string, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range bytes.Lines(data) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		delete(e, "Timestamp")
		delete(e, "Timestamp@odata.type")
		delete(e, "odata.etag")
		canonical, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(canonical))
	}
	return lines, nil
}
