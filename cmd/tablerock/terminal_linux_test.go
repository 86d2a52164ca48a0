package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
)

// onTerminal runs a command line with its output on a terminal of some columns. It returns
// what the terminal received.
func onTerminal(t *testing.T, columns uint16, args ...string) string {
	t.Helper()
	term := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(term.slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	code := run(t.Context(), args, nil, term.slave, &stderr)
	term.slave.Close()
	var text []byte
	for part := range term.written {
		text = append(text, part...)
	}
	if code != exitOK {
		t.Errorf("%s: exit code %d: %s", strings.Join(args, " "), code, &stderr)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// TestTerminalWidth queries a table on terminals of several widths: the lines fit, as a table
// if that is possible.
func TestTerminalWidth(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	dir := t.TempDir()
	file := filepath.Join(dir, "people.csv")
	csv := "PartitionKey,RowKey,Name,Note,Height@Edm.Double,Badge@Edm.Guid\n" +
		"tokyo,0001,佐藤 花子,\"" + strings.Repeat("a long\tnote, ", 12) + "\",1.58,0f3e4f0e-5d5b-4d6c-9a55-0a1b2c3d4e5f\n"
	if err := os.WriteFile(file, []byte(csv), 0o600); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if code := run(t.Context(), []string{"import", "People", file, "--data", data, "-q"}, nil, os.Stdout, os.Stderr); code != exitOK {
		t.Fatalf("import exits with %d", code)
	}
	for columns, isTable := range map[uint16]bool{60: false, 100: false, 160: true} {
		got := onTerminal(t, columns, "entity", "query", "People", "--data", data)
		if strings.HasPrefix(got, "PartitionKey  RowKey  Timestamp") != isTable || strings.HasPrefix(got, "-- 1 --") == isTable {
			t.Errorf("on %d columns, want a table %t, got\n%s", columns, isTable, got)
		}
		for line := range strings.Lines(got) {
			if n := output.Width(strings.TrimSuffix(line, "\n")); n > int(columns) {
				t.Errorf("on %d columns: a line of %d columns: %s", columns, n, line)
			}
		}
		if !isTable && !strings.Contains(got, `a long\tnote`) || !strings.Contains(got, "佐藤 花子") {
			t.Errorf("on %d columns values are missing:\n%s", columns, got)
		}
	}
}

// TestColors prints a table on a terminal: its headers are bold unless NO_COLOR is set.
func TestColors(t *testing.T) {
	t.Setenv("TERM", "xterm")
	dir := t.TempDir()
	if code := run(t.Context(), []string{"table", "create", "People", "--data", dir, "-q"}, nil, os.Stdout, os.Stderr); code != exitOK {
		t.Fatalf("table create exits with %d", code)
	}
	for value, want := range map[string]string{"": "\x1b[1mTableName  Created\x1b[0m\n", "1": "TableName  Created\n"} {
		t.Setenv("NO_COLOR", value)
		if got := onTerminal(t, 80, "table", "list", "--data", dir); !strings.HasPrefix(got, want) {
			t.Errorf("with NO_COLOR=%q got %q, want it to begin with %q", value, got, want)
		}
	}
	var piped bytes.Buffer
	t.Setenv("NO_COLOR", "")
	code := run(t.Context(), []string{"table", "list", "--data", dir, "-o", "table"}, nil, &piped, os.Stderr)
	if code != exitOK || strings.Contains(piped.String(), "\x1b") {
		t.Errorf("into a pipe: exit code %d and %q", code, &piped)
	}
}

// TestQuestions answers the questions of commands that delete. They are asked on a terminal
// only.
func TestQuestions(t *testing.T) {
	dir := t.TempDir()
	rows := `{"PartitionKey":"p","RowKey":"1","N":1}` + "\n" + `{"PartitionKey":"p","RowKey":"2","N":2}` + "\n"
	if code := run(t.Context(), []string{"import", "Rows", "-", "--data", dir, "-q"}, strings.NewReader(rows), os.Stdout, os.Stderr); code != exitOK {
		t.Fatalf("import exits with %d", code)
	}
	where := filepath.Join(dir, "devstoreaccount1")
	for _, c := range []struct{ args, answer, question string }{
		{"entity delete Rows --filter|N gt 1", "", "delete 1 entity of table Rows in " + where + "? [y/N] "},
		{"entity delete Rows --filter|N gt 1", "y", "delete 1 entity of table Rows in " + where + "? [y/N] "},
		{"clear Rows", "no", "delete all entities of table Rows in " + where + "? [y/N] "},
		{"clear Rows", "Y", "delete all entities of table Rows in " + where + "? [y/N] "},
		{"table delete Rows", "n", "delete table Rows and all its entities in " + where + "? [y/N] "},
		{"table delete Rows", "yess", "delete table Rows and all its entities in " + where + "? [y/N] "},
		{"table delete Rows", "Yes", "delete table Rows and all its entities in " + where + "? [y/N] "},
	} {
		words, last, _ := strings.Cut(c.args, "|")
		args := append(strings.Fields(words), "--data", dir)
		if last != "" {
			args = append(strings.Fields(words), last, "--data", dir)
		}
		term := openTerminal(t)
		if _, err := term.master.WriteString(c.answer + "\n"); err != nil {
			t.Fatal(err)
		}
		want := exitUsage
		if c.answer == "y" || c.answer == "Y" || c.answer == "Yes" {
			want = exitOK
		}
		code := run(t.Context(), args, term.slave, os.Stdout, term.slave)
		// A read of the terminal may go on, so that it has no end: print one.
		if _, err := term.slave.WriteString("<end>"); err != nil {
			t.Fatal(err)
		}
		var text []byte
		for part := range term.written {
			if text = append(text, part...); strings.Contains(string(text), "<end>") {
				break
			}
		}
		if code != want || !strings.Contains(string(text), c.question) {
			t.Errorf("%s with the answer %q: exit code %d, want %d and the question %q, got %q", c.args, c.answer, code, want, c.question, text)
		}
	}
}
