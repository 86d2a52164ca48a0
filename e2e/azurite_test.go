package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

// azurite is a process of Azurite's table service.
type azurite struct {
	endpoint
	cmd *exec.Cmd
}

// startAzurite starts Azurite on a directory and waits until it answers. It skips the test
// unless TABLEROCK_AZURITE names the file dist/src/table/main.js of Azurite.
func startAzurite(t *testing.T, dir string) *azurite {
	t.Helper()
	script := os.Getenv("TABLEROCK_AZURITE")
	if script == "" {
		t.Skip("skipping Azurite: TABLEROCK_AZURITE does not name its dist/src/table/main.js")
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	free.Close()
	url := "http://" + address + "/devstoreaccount1"
	a := &azurite{endpoint: endpoint{
		url: url, account: "devstoreaccount1", key: developmentKey,
		connectionString: "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" + developmentKey + ";TableEndpoint=" + url + ";",
	}}
	a.cmd = exec.Command("node", script, "--location", dir, "--tablePort", port, "--silent", "--skipApiVersionCheck", "--disableTelemetry")
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.kill)
	for end := time.Now().Add(readyTimeout); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("Azurite does not answer: %v", err)
		}
	}
}

// kill ends the process at once. It may be called again.
func (a *azurite) kill() {
	_ = a.cmd.Process.Kill() // the error is that of a process that has already ended
	_ = a.cmd.Wait()
}

// messages runs the program, which must end with an exit code, and returns its standard
// output and its messages.
func messages(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%q: %v", args, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("tablerock %q: exit code %d, want %d\n%s%s", args, got, code, &out, &complaints)
	}
	return out.String(), complaints.String()
}

// wantEntities compares the entities of two JSONL files but for Timestamps and ETags.
func wantEntities(t *testing.T, got, want string) {
	t.Helper()
	read := func(name string) map[string]any {
		all := map[string]any{}
		for line := range bytes.Lines(must(os.ReadFile(name))(t)) {
			m := members(t, line)
			all[fmt.Sprint(m["PartitionKey"], "\x00", m["RowKey"])] = custom(m)
		}
		return all
	}
	a, b := read(got), read(want)
	if len(a) != len(b) {
		t.Errorf("%s has %d entities, want %d", got, len(a), len(b))
	}
	for key, e := range b {
		if !reflect.DeepEqual(a[key], e) {
			t.Fatalf("%s: %q: got %v, want %v", got, key, a[key], e)
		}
	}
}

// TestAzurite moves entities of all types between a directory, a server and Azurite by the
// command line, in both directions.
func TestAzurite(t *testing.T) {
	needProgram(t)
	dir := t.TempDir()
	az := startAzurite(t, filepath.Join(dir, "azurite"))
	in := func(name string) string { return filepath.Join(dir, name) }
	to := []string{"--connection-string", az.connectionString}
	on := func(args ...string) []string { return append(args, to...) }

	generate := exec.CommandContext(t.Context(), "go", "run", "./examples/generate", "-n", "3000", "-rows", "700")
	generate.Dir = ".."
	// Azurite stores -0.0 as 0.0.
	lines := strings.NewReplacer(`:-0.0,`, `:0.0,`, `:-0.0}`, `:0.0}`).Replace(string(must(generate.Output())(t)))
	if err := os.WriteFile(in("all.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	messages(t, 0, "import", "Entities", in("all.jsonl"), "--data", in("one"))

	for _, file := range []string{"all.jsonl", "all.csv", "all.parquet", "all.json.gz"} {
		if file != "all.jsonl" {
			messages(t, 0, on("export", "Entities", in(file))...)
			messages(t, 0, on("clear", "Entities", "--yes")...)
		}
		messages(t, 0, on("import", "Entities", in(file))...)
		if out, _ := messages(t, 0, on("count", "Entities")...); !strings.Contains(out, `"entities":3000`) {
			t.Errorf("count after the import of %s: %s", file, out)
		}
		messages(t, 0, on("export", "Entities", in("out.jsonl"))...)
		wantEntities(t, in("out.jsonl"), in("all.jsonl"))
	}

	s := start(t, in("server"), nil)
	for _, c := range []struct {
		from, to string
		written  string
	}{
		{in("one"), az.connectionString, "0"}, // it has them from the import
		{az.connectionString, in("two"), "3,000"},
		{az.connectionString, in("two"), "0"},
		{az.connectionString, s.connectionString, "3,000"},
		{s.connectionString, az.connectionString, "0"},
	} {
		_, text := messages(t, 0, "copy", "--from", c.from, "--to", c.to)
		if want := "table Entities: 3,000 rows, " + c.written + " written"; !strings.Contains(text, want) {
			t.Errorf("copy from %s to %s: %s, want %q", c.from, c.to, text, want)
		}
	}
	messages(t, 0, on("clear", "Entities", "--yes")...)
	if _, text := messages(t, 0, "copy", "--from", in("two"), "--to", az.connectionString); !strings.Contains(text, "3,000 written") {
		t.Errorf("copy to the empty table: %s", text)
	}
	messages(t, 0, on("export", "Entities", in("out.jsonl"))...)
	wantEntities(t, in("out.jsonl"), in("all.jsonl"))
}

// TestAzuriteVerbs runs the verbs of tables and entities on Azurite, with their exit codes.
func TestAzuriteVerbs(t *testing.T) {
	needProgram(t)
	az := startAzurite(t, t.TempDir())
	const another = `W/"datetime'2020-01-01T00%3A00%3A00Z'"`
	for _, c := range []struct {
		args string // separated by blanks
		code int
		out  string // in the output or the messages
	}{
		{"table create People", 0, "created table People"},
		{"table create People", 4, "409 TableAlreadyExists"},
		{"table list", 0, `{"TableName":"People"}`},
		{"entity query Peopl", 3, "did you mean People"},
		{`entity insert People {"PartitionKey":"it's5%","RowKey":"","B@odata.type":"Edm.Int64","B":"9007199254740993","W":3.0}`, 0, "Timestamp"},
		{`entity insert People {"PartitionKey":"p","RowKey":"1","N":1}`, 0, "odata.etag"},
		{`entity insert People {"PartitionKey":"p","RowKey":"1","N":1}`, 4, "already exists; use"},
		{`entity get People it's5% `, 0, `"B":"9007199254740993","W":3.0`},
		{`entity merge People {"PartitionKey":"p","RowKey":"1","M":7}`, 0, "odata.etag"},
		{`entity replace People {"PartitionKey":"p","RowKey":"1"} --if-match ` + another, 4, "412 UpdateConditionNotSatisfied"},
		{`entity query People --filter N%20eq%201 --select M`, 0, `"M":7`},
		{`entity upsert People {"PartitionKey":"p","RowKey":"1","N":2}`, 0, "odata.etag"},
		{`entity replace People {"PartitionKey":"p","RowKey":"3"}`, 3, "404 ResourceNotFound"},
		{"entity delete People p 1 --if-match " + another, 4, "412"},
		{"entity delete People p 1", 0, ""},
		{"entity delete People p 1", 3, "404 ResourceNotFound"},
		{"entity query People --reverse", 2, "no descending order"},
		{"count People", 0, `"entities":1`},
		{"count Nobody", 3, "404 TableNotFound"},
		{"clear People --yes", 0, "deleted 1 entity"},
		{"table delete People --yes", 0, "deleted table People"},
		{"table delete People --yes", 3, "404 ResourceNotFound"},
	} {
		args := strings.Split(c.args, " ")
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "%20", " ")
		}
		out, text := messages(t, c.code, append(args, "--connection-string", az.connectionString)...)
		if !strings.Contains(out+text, c.out) {
			t.Errorf("tablerock %s: got %s%s, want %q", c.args, out, text, c.out)
		}
		if strings.Contains(out+text, developmentKey) {
			t.Errorf("tablerock %s prints the key", c.args)
		}
	}
}

// TestAzuriteKill kills Azurite and Tablerock after a write was acknowledged.
func TestAzuriteKill(t *testing.T) {
	needProgram(t)
	dir := t.TempDir()
	insert := func(connection string) {
		messages(t, 0, "table", "create", "People", "--connection-string", connection)
		messages(t, 0, "entity", "insert", "People", `{"PartitionKey":"p","RowKey":"1"}`, "--connection-string", connection)
	}
	az := startAzurite(t, filepath.Join(dir, "azurite"))
	insert(az.connectionString)
	az.kill()
	az = startAzurite(t, filepath.Join(dir, "azurite"))
	if out, _ := messages(t, 0, "table", "list", "--connection-string", az.connectionString); out != "" {
		t.Errorf("after the kill Azurite has %s: docs/azurite.md says that it loses writes", out)
	}
	s := start(t, filepath.Join(dir, "data"), nil)
	insert(s.connectionString)
	s.end(os.Kill)
	s = start(t, filepath.Join(dir, "data"), nil)
	if out, _ := messages(t, 0, "count", "People", "--connection-string", s.connectionString); !strings.Contains(out, `"entities":1`) {
		t.Errorf("after the kill the server has %s", out)
	}
}

// TestAzuriteZero writes -0.0 to Azurite and Tablerock.
func TestAzuriteZero(t *testing.T) {
	needProgram(t)
	az := startAzurite(t, t.TempDir())
	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	for connection, want := range map[string]string{az.connectionString: `"V":0.0`, s.connectionString: `"V":-0.0`} {
		messages(t, 0, "table", "create", "Zeros", "--connection-string", connection)
		messages(t, 0, "entity", "insert", "Zeros", `{"PartitionKey":"p","RowKey":"1","V":-0.0}`, "--connection-string", connection)
		if out, _ := messages(t, 0, "entity", "get", "Zeros", "p", "1", "--connection-string", connection); !strings.Contains(out, want) {
			t.Errorf("got %s, want %s", out, want)
		}
	}
}

// azuriteProof is the test of a row of the differences in docs/azurite.md.
var azuriteProof = regexp.MustCompile("`e2e\\.(Test[A-Za-z]+)(?:/([^`]+))?`")

// TestAzuriteDifferences requires each test that docs/azurite.md names for a difference to
// fail on Azurite. The tests pass on Tablerock, or they fail there too.
func TestAzuriteDifferences(t *testing.T) {
	_, table, found := strings.Cut(string(must(os.ReadFile("../docs/azurite.md"))(t)), "\n## Differences\n")
	proofs := azuriteProof.FindAllStringSubmatch(table, -1)
	if !found || len(proofs) < 10 {
		t.Fatalf("docs/azurite.md has %d differences with a test", len(proofs))
	}
	az := startAzurite(t, t.TempDir())
	for _, m := range proofs {
		if strings.HasPrefix(m[1], "TestAzurite") {
			continue // it judges both
		}
		t.Run(m[1]+"/"+m[2], func(t *testing.T) {
			pattern := "^" + m[1] + "$"
			if m[2] != "" {
				pattern += "/^" + regexp.QuoteMeta(strings.ReplaceAll(m[2], " ", "_")) + "$"
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.count=1", "-test.run", pattern)
			cmd.Env = append(os.Environ(), "TABLEROCK_E2E_CONNECTION_STRING="+az.connectionString)
			out, err := cmd.CombinedOutput()
			name := strings.TrimSuffix(m[1]+"/"+strings.ReplaceAll(m[2], " ", "_"), "/")
			if err == nil || !strings.Contains(string(out), "--- FAIL: "+name+" ") {
				t.Errorf("-test.run %s passes on Azurite, or does not exist: it proves no difference\n%.2000s", pattern, out)
			}
		})
	}
}
