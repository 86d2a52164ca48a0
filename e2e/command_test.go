package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
)

// command runs the program and returns its output and exit code.
func command(t *testing.T, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	if complaints.Len() > 0 {
		t.Logf("%q: %s", args, complaints.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// TestCommandLine imports entities of all types and reads them with the SDK, writes beside
// the server, then reads with the command line what the SDK wrote.
func TestCommandLine(t *testing.T) {
	needDirectory(t)
	data := filepath.Join(t.TempDir(), "data")
	generate := exec.CommandContext(t.Context(), "go", "run", "./examples/generate", "-n", "5000", "-rows", "700")
	generate.Dir = ".."
	lines := must(generate.Output())(t)
	file := filepath.Join(t.TempDir(), "entities.jsonl")
	if err := os.WriteFile(file, lines, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := command(t, "import", "Generated", file, "--data", data, "--quiet"); code != 0 {
		t.Fatalf("import: exit code %d\n%s", code, out)
	}

	s := start(t, data, nil)
	client := s.service(t).NewClient("Generated")
	want := map[string]map[string]any{}
	for line := range bytes.Lines(lines) {
		m := members(t, line)
		want[m["PartitionKey"].(string)+"\x00"+m["RowKey"].(string)] = custom(m)
	}
	got := queryAll(t, client, "")
	if len(got) != len(want) {
		t.Errorf("%d entities, want %d", len(got), len(want))
	}
	for _, m := range got {
		key := m["PartitionKey"].(string) + "\x00" + m["RowKey"].(string)
		if !reflect.DeepEqual(custom(m), want[key]) {
			t.Fatalf("%q: got %v, want %v", key, custom(m), want[key])
		}
	}
	must(client.UpsertEntity(t.Context(), entity("it's", "written", property{"V", "Edm.Int64", `"7"`}), nil))(t)
	// The command writes through the server, so the SDK sees the entity at once.
	if _, code := command(t, "entity", "upsert", "Generated", `{"PartitionKey":"a","RowKey":"b","V":3}`, "--data", data); code != 0 {
		t.Errorf("a write beside the server: exit code %d, want 0", code)
	}
	if beside := queryAll(t, client, "PartitionKey eq 'a' and RowKey eq 'b'"); len(beside) != 1 || fmt.Sprint(beside[0]["V"]) != "3" {
		t.Errorf("after a write beside the server: got %v, want one entity with V = 3", beside)
	}
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0", code)
	}

	out, code := command(t, "entity", "get", "Generated", "it's", "written", "--data", data)
	var m map[string]any
	if err := json.Unmarshal([]byte(out), &m); err != nil || code != 0 || m["V"] != "7" {
		t.Errorf("got exit code %d, %s", code, out)
	}
	if out, code := command(t, "verify", "--data", data); code != 0 {
		t.Errorf("verify: exit code %d\n%s", code, out)
	}
	if out, code := command(t, "table", "list", "--data", data); code != 0 || !strings.Contains(out, "Generated") {
		t.Errorf("table list: exit code %d\n%s", code, out)
	}
}
