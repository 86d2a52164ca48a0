package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/race"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

func TestMain(m *testing.M) {
	program := func() { os.Exit(mainCode()) }
	testscript.Main(m, map[string]func(){"tablerock": program, "azurite-table": program})
}

// TestScripts runs each script of testdata in its own directory. Beside the commands of
// testscript, a script can use
//
//	exits CODE COMMAND ...   run a command and check its exit code
//	lock DIR                 open the database in DIR and keep it locked
//	damage FILE OFFSET       flip the bits of one byte; a negative offset counts from the end
//	undated FILE             replace the timestamps of 2020 to 2049 by TIME
//	serve FLAG ...           start a server; see startServer
//	end SIGNAL               end the server; the command stop of testscript ends the script
//	request STATUS METHOD URL [BODY]   send a signed request to the server
//
// the commands of script_postgres_test.go, which skip the script on a machine without PostgreSQL,
// and the condition [race]: the race detector is on. It makes each command ten times slower.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("GORACE", os.Getenv("GORACE")) // the programs need the race detector's options
			for _, v := range os.Environ() {
				if len(v) > 10 && v[:10] == "TABLEROCK_" {
					e.Vars = append(e.Vars, v[:bytes.IndexByte([]byte(v), '=')+1])
				}
			}
			e.Setenv("KEY", developmentKey)
			azurite, err := filepath.Abs("../../internal/transfer/testdata/azurite/" + transfer.AzuriteFile)
			if err != nil {
				return err
			}
			e.Setenv("AZURITE", azurite)
			e.Values[runningKey{}] = new(*running)
			e.Values[postgresKey{}] = &postgresScript{tb: e.T().(testing.TB)}
			return nil
		},
		Cmds: withPostgres(map[string]func(*testscript.TestScript, bool, []string){
			"exits":   exits,
			"lock":    lock,
			"damage":  damage,
			"undated": undated,
			"now":     now,
			"backups": waitForBackups,
			"serve":   startServer,
			"end":     endServer,
			"request": request,
		}),
		Condition: func(cond string) (bool, error) {
			if cond != "race" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return race.Enabled, nil
		},
		RequireExplicitExec: true,
	})
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		got = e.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("%q exits with %d, want %d; output: %s%s", args[1:], got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func lock(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: lock DIR")
	}
	db, err := engine.Open(filepath.ToSlash(ts.MkAbs(args[0])), engine.Options{})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	all := len(args) == 3 && args[2] == "all"
	if neg || len(args) != 2 && !all {
		ts.Fatalf("usage: damage FILE OFFSET [all]")
	}
	matches, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(matches) == 0 || len(matches) > 1 && !all {
		ts.Fatalf("%s are %d files, want 1", args[0], len(matches))
	}
	offset, err := strconv.Atoi(args[1])
	ts.Check(err)
	for _, name := range matches {
		b, err := os.ReadFile(name)
		ts.Check(err)
		at := offset
		if at < 0 {
			at += len(b)
		}
		b[at] ^= 0xFF
		ts.Check(os.WriteFile(name, b, 0o600))
	}
}

// TestScriptsAreWhole checks that no script uses a command of testscript that ends it, such
// as stop: the rest of the script would never run.
func TestScriptsAreWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	ends := regexp.MustCompile(`(?m)^(stop|skip)\b.*`)
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if line := ends.Find(text); line != nil {
			t.Errorf("%s: %q ends the script", name, line)
		}
	}
}

var stamp = regexp.MustCompile(`20[2-4]\d-\d\d-\d\dT\d\d(:|%3A)\d\d(:|%3A)\d\d(\.\d+)?Z`)

// padding matches the blanks after a timestamp or its column header in a table. The width
// of a timestamp depends on the time.
var padding = regexp.MustCompile(`(TIME|Timestamp)  +`)

func undated(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: undated FILE")
	}
	text := stamp.ReplaceAllString(ts.ReadFile(args[0]), "TIME")
	text = padding.ReplaceAllString(text, "$1  ")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o600))
}
