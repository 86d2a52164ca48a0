package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/manual"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/sstable"
	"github.com/tablerock-db/tablerock/store"
)

// TestInterrupted cancels an import that waits for standard input. The acknowledged rows
// must stay.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ack := filepath.Join(dir, "ack")
	ctx, cancel := context.WithCancel(t.Context())
	lines := "PartitionKey,RowKey\np,1\np,2\nq,1\n"
	waiting, typed := io.Pipe()
	t.Cleanup(func() { typed.Close() })
	var stdout, stderr bytes.Buffer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"import", "Tab", "-", "--format", "csv", "--data", dir, "--ack", ack}, waiting, &stdout, &stderr)
	}()
	// A write to the pipe returns when its bytes are read, so the first lines have been
	// read by then.
	if _, err := io.WriteString(typed, lines); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-done; code != exitInterrupted {
		t.Errorf("exit code %d, want %d; stderr: %s", code, exitInterrupted, &stderr)
	}
	if got := stderr.String(); !strings.HasSuffix(got, "tablerock: interrupted\n") {
		t.Errorf("stderr %q does not end in interrupted", got)
	}
	text, err := os.ReadFile(ack)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	acked := map[string]string{"{\"first\":2,\"last\":3}": "p 2", "{\"first\":4,\"last\":4}": "q 1"}
	for line := range strings.Lines(string(text)) {
		last, ok := acked[strings.TrimSpace(line)]
		if !ok {
			t.Errorf("acknowledged %q, want lines 2 to 3 or 4", line)
			continue
		}
		stderr.Reset()
		args := append([]string{"entity", "get", "Tab", "--data", dir}, strings.Fields(last)...)
		if code := run(t.Context(), args, nil, &stdout, &stderr); code != exitOK {
			t.Errorf("%s was acknowledged, and get exits with %d: %s", last, code, &stderr)
		}
	}
}

// TestInterruptedAdvice cancels imports: each says how many rows are stored and how to
// continue in its mode.
func TestInterruptedAdvice(t *testing.T) {
	for mode, want := range map[string]string{
		"replace": `0 entities are stored in table Tab; import again to continue`,
		"insert": `([023] entities are|1 entity is) stored in table Tab; ` +
			`import again with --mode replace or merge, or with --skip-bad, because insert refuses entities that exist`,
	} {
		want = `^` + want + `\ntablerock: interrupted\n$`
		ctx, cancel := context.WithCancel(t.Context())
		waiting, typed := io.Pipe()
		t.Cleanup(func() { typed.Close() })
		var stderr bytes.Buffer
		done := make(chan int)
		go func() {
			done <- run(ctx, []string{"import", "Tab", "-", "--format", "csv", "--mode", mode, "--data", t.TempDir()}, waiting, io.Discard, &stderr)
		}()
		if _, err := io.WriteString(typed, "PartitionKey,RowKey\np,1\np,2\nq,1\n"); err != nil {
			t.Fatal(err)
		}
		cancel()
		if code := <-done; code != exitInterrupted || !regexp.MustCompile(want).MatchString(stderr.String()) {
			t.Errorf("--mode %s: exit code %d and %q, want %q", mode, code, &stderr, want)
		}
	}
}

// interrupter cancels a context when text is written to it.
type interrupter struct {
	text   string
	cancel context.CancelFunc
}

func (i interrupter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(i.text)) {
		i.cancel()
	}
	return len(p), nil
}

// TestInterruptedBench interrupts a measurement when its second workload begins. The result of the
// first is printed, and the directory removed.
func TestInterruptedBench(t *testing.T) {
	for format, want := range map[string]string{
		"json":  `^\[{"workload":"load/order=sorted",[^{}]*}\]\n$`,
		"csv":   `^workload,.*\nload/order=sorted,.*\n$`,
		"table": `^workload .*\nload/order=sorted .*\n$`,
	} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		var stdout bytes.Buffer
		args := []string{"bench", "--entities", "1000", "--dir", dir, "-o", format}
		code := run(ctx, args, nil, &stdout, interrupter{"load/order=random", cancel})
		if code != exitInterrupted || !regexp.MustCompile(want).MatchString(stdout.String()) {
			t.Errorf("-o %s: exit code %d and %q, want %d and %q", format, code, &stdout, exitInterrupted, want)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("-o %s leaves %v, %v", format, left, err)
		}
	}
}

// TestInterruptedCommands runs commands with a context that is already canceled.
func TestInterruptedCommands(t *testing.T) {
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	in := strings.NewReader(`{"PartitionKey":"p","RowKey":"r"}` + "\n")
	if code := run(t.Context(), []string{"import", "Tab", "-", "--data", dir}, in, &stdout, &stderr); code != exitOK {
		t.Fatalf("import exits with %d: %s", code, &stderr)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{
		"entity query Tab", "entity query Tab -o table", "entity get Tab p r", "export Tab", "verify",
		"table create Other", "import Tab -", "entity insert Tab -", "compact",
	} {
		stderr.Reset()
		if code := run(over, append(strings.Fields(args), "--data", dir), in, &stdout, &stderr); code != exitInterrupted {
			t.Errorf("%s exits with %d, want %d: %s", args, code, exitInterrupted, &stderr)
		}
	}
}

// TestHelpWidth checks the width of all help texts.
func TestHelpWidth(t *testing.T) {
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		var text bytes.Buffer
		c.SetOut(&text)
		if err := c.Help(); err != nil {
			t.Errorf("%s: %v", c.CommandPath(), err)
		}
		for line := range strings.Lines(text.String()) {
			if n := output.Width(strings.TrimSpace(line)); n > helpWidth {
				t.Errorf("help of %s: a line of %d columns, want at most %d: %s", c.CommandPath(), n, helpWidth, line)
			}
		}
		for _, sub := range c.Commands() {
			check(sub)
		}
	}
	check(newRoot(&app{}))
}

// TestFlagsDocumented requires the pages to name each flag of each command.
func TestFlagsDocumented(t *testing.T) {
	var pages []byte
	for _, name := range []string{"command-line.md", "serve.md"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, page...)
	}
	var check func(c *cobra.Command)
	check = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			named := regexp.MustCompile("--" + f.Name + `\b[^-]`)
			if !f.Hidden && !named.Match(pages) {
				t.Errorf("%s: docs/command-line.md and docs/serve.md do not name --%s", c.CommandPath(), f.Name)
			}
		})
		for _, sub := range c.Commands() {
			if sub.Name() != "completion" { // its flags are those of cobra
				check(sub)
			}
		}
	}
	check(newRoot(&app{}))
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("anything"), exitFailure},
		{store.ErrInvalid, exitFailure},
		{store.ErrTooLarge, exitFailure},
		{store.ErrNoSpace, exitFailure},
		{store.ErrOutcomeUnknown, exitFailure},
		{store.ErrReadOnly, exitFailure},
		{store.ErrUnavailable, exitFailure},
		{fmt.Errorf("%w: %w", store.ErrUnavailable, fs.ErrNotExist), exitFailure},
		{fmt.Errorf("%w: %w", store.ErrOutcomeUnknown, store.ErrCorrupt), exitFailure},
		{usagef("so not"), exitUsage},
		{store.ErrTableNotFound, exitNotFound},
		{store.ErrEntityNotFound, exitNotFound},
		{fs.ErrNotExist, exitNotFound},
		{store.ErrTableExists, exitConflict},
		{store.ErrEntityExists, exitConflict},
		{store.ErrPrecondition, exitConflict},
		{&store.CorruptError{File: "f"}, exitCorrupt},
		{store.ErrLocked, exitLocked},
		{store.ErrNewerFormat, exitUnusable},
		{manifest.ErrNewerFormat, exitUnusable},
		{sstable.ErrNewerFormat, exitUnusable},
		{store.ErrNotDatabase, exitUnusable},
		{fs.ErrPermission, exitUnusable},
		{&os.PathError{Op: "open", Path: "f", Err: syscall.EROFS}, exitUnusable},
		{context.Canceled, exitInterrupted},
		{&quietError{exitCorrupt}, exitCorrupt},
	} {
		wrapped := fmt.Errorf("step: %w", errors.Join(c.err, nil))
		if got := exitCode(wrapped); got != c.want {
			t.Errorf("%v exits with %d, want %d", c.err, got, c.want)
		}
		if text := message(wrapped); strings.Contains(text, "\n") {
			t.Errorf("the message of %v has several lines: %q", c.err, text)
		}
	}
}

// TestExitCodeTopic compares the help topic on exit codes with the documentation.
func TestExitCodeTopic(t *testing.T) {
	text, err := os.ReadFile("../../docs/command-line.md")
	if err != nil {
		t.Fatal(err)
	}
	topic := strings.Join(strings.Fields(manual.Topics()[0].Long), " ")
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| (.*) \|$`).FindAllSubmatch(text, -1)
	for _, row := range rows {
		if want := string(row[1]) + " " + string(row[2]); !strings.Contains(topic, want) {
			t.Errorf("the topic does not say %q", want)
		}
	}
	if len(rows) != 9 {
		t.Errorf("docs/command-line.md has %d exit codes, want 9", len(rows))
	}
}

// TestHelpIsLost prints help to a writer that fails.
func TestHelpIsLost(t *testing.T) {
	closed, full := io.Pipe()
	if err := closed.CloseWithError(syscall.ENOSPC); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{}, {"help", "import"}, {"import", "--help"}, {"help", "exit-codes"}} {
		var stderr bytes.Buffer
		if code := run(t.Context(), args, nil, full, &stderr); code != exitFailure || !strings.Contains(stderr.String(), "no space left on device") {
			t.Errorf("%v: exit code %d, %s; want %d", args, code, &stderr, exitFailure)
		}
	}
}
