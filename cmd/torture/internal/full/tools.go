package full

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/store"
)

// toolLimit is the longest time that a command may take.
const toolLimit = 2 * time.Minute

// account is the account of the database.
const account = "devstoreaccount1"

// tool runs a command of the program, which must succeed.
func (r *run) tool(ctx context.Context, args ...string) error {
	return r.toolAt(ctx, r.vol.data(), args...)
}

func (r *run) toolAt(ctx context.Context, data string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	out, err := r.command(ctx, data, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tablerock %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (r *run) command(ctx context.Context, data string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.o.Program, append(args, "--data", data, "--quiet")...)
	ownGroup(cmd)
	return cmd
}

// tools runs commands on the full volume while no server runs. A command that fails is a
// violation, and the next one runs all the same.
func (r *run) tools(ctx context.Context) error {
	r.attempt(r.export(ctx, r.vol.data(), true))
	if rows := r.m.rowsIn(1); len(rows) > 0 {
		row := rows[len(rows)/2]
		r.m.set([]int{row}, unknown)
		err := r.tool(ctx, "entity", "delete", tableNames[1], partitionKey(row), rowKey(row))
		if err == nil {
			r.m.set([]int{row}, deleted)
		}
		r.attempt(err)
	}
	r.attempt(r.tool(ctx, "table", "delete", smallTable, "--yes"))
	copied := filepath.Join(r.dir, "copy")
	err := r.tool(ctx, "checkpoint", filepath.Join(copied, account))
	if err == nil {
		err = r.export(ctx, copied, true)
	}
	r.attempt(err)
	r.attempt(r.tool(ctx, "compact"))
	r.freed = r.m.bytesIn(0)
	if err := r.tool(ctx, "table", "delete", tableNames[0], "--yes"); err != nil {
		return err
	}
	r.m.drop(0)
	r.attempt(r.tool(ctx, "compact"))
	return ctx.Err()
}

func (r *run) attempt(err error) {
	if err != nil {
		r.violate("a command fails on the full volume", err.Error())
	}
}

// export exports the second table of a database and compares it with the model.
func (r *run) export(ctx context.Context, data string, reopened bool) error {
	output := filepath.Join(r.dir, "export.jsonl")
	if err := r.toolAt(ctx, data, "export", tableNames[1], output); err != nil {
		return err
	}
	f, err := os.Open(output)
	if err != nil {
		return err
	}
	defer f.Close()
	s := r.m.scan(1)
	for d := json.NewDecoder(bufio.NewReader(f)); ; {
		var e entity
		err := d.Decode(&e)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("export: %w", err)
		}
		s.row(&e)
	}
	if wrong := s.end(reopened); wrong != "" {
		r.violate("an export differs", wrong)
	}
	return nil
}

// importTables fills the first table to a share of the volume and then the second one until
// the import is refused.
func (r *run) importTables(ctx context.Context) error {
	limit := int64(float64(r.vol.fresh) * half)
	if err := r.importTable(ctx, 0, limit); err != nil {
		return err
	}
	return r.importTable(ctx, 1, 1<<62)
}

// importTable imports rows of a table until a number of bytes is read or the import fails.
func (r *run) importTable(ctx context.Context, table int, limit int64) error {
	acks := filepath.Join(r.dir, "acks")
	cmd := r.command(ctx, r.vol.data(), "import", tableNames[table], "-", "--format", "jsonl", "--ack", acks)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	measured := make(chan struct{})
	measuring, enough := context.WithCancel(ctx)
	go func() {
		defer close(measured)
		for measuring.Err() == nil {
			r.firstRefusal(0) // keeps the largest usage
			time.Sleep(5 * time.Millisecond)
		}
	}()
	rows := r.feed(in, table, limit)
	err = cmd.Wait()
	enough()
	<-measured
	if ctx.Err() != nil {
		return ctx.Err()
	}
	text := strings.TrimSpace(out.String())
	var failed *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &failed):
		return err
	case failed.ExitCode() != 1, !strings.Contains(text, "no space"), strings.Contains(text, store.ErrOutcomeUnknown.Error()):
		r.violate("an import is not refused for lack of space", fmt.Sprintf("exit code %d: %.500s", failed.ExitCode(), text))
	}
	return r.acknowledge(acks, rows)
}

// feed writes rows to an import until a number of bytes is written or the import has ended.
// It returns the rows by line. Their outcome is unknown.
func (r *run) feed(in io.WriteCloser, table int, limit int64) (rows []int) {
	defer in.Close()
	var line []byte
	for bytes := int64(0); bytes < limit; {
		unit := r.m.take(table)
		r.m.set(unit, unknown)
		for _, row := range unit {
			rows = append(rows, row)
			line = append(entityJSON(line[:0], r.o.Seed, row), '\n')
			if _, err := in.Write(line); err != nil {
				return rows
			}
			bytes += int64(valueBytes(row))
		}
	}
	return rows
}

// acknowledge records the rows that an import acknowledged.
func (r *run) acknowledge(acks string, rows []int) error {
	f, err := os.Open(acks)
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var ack struct{ First, Last int }
		if err := json.Unmarshal(lines.Bytes(), &ack); err != nil || ack.First < 1 || ack.Last > len(rows) {
			return fmt.Errorf("acknowledgement %q: %w", lines.Text(), err)
		}
		r.m.set(rows[ack.First-1:ack.Last], present)
	}
	return nil
}
