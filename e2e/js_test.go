package e2e

import (
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestJavaScript runs the tests of the folder js against two servers: one with the development
// account and another account, and one with TLS.
func TestJavaScript(t *testing.T) {
	needNode(t)
	files := must(filepath.Glob("js/test/*.test.js"))(t)
	if len(files) == 0 {
		t.Fatal("js/test has no tests")
	}
	key := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("key", 20)))
	plain := start(t, filepath.Join(t.TempDir(), "data"), []string{"AZURITE_ACCOUNTS=devstoreaccount1:" + developmentKey + ";other:" + key})
	secure := start(t, filepath.Join(t.TempDir(), "data"), nil, "--self-signed")
	localhost := strings.NewReplacer("127.0.0.1", "localhost", plain.account, "other").Replace(plain.url)
	args := []string{"--test", "--test-concurrency=1", "--test-reporter=tap"}
	for _, f := range files {
		args = append(args, strings.TrimPrefix(filepath.ToSlash(f), "js/"))
	}
	cmd := exec.CommandContext(t.Context(), "node", args...)
	cmd.Dir = "js"
	cmd.Env = append(os.Environ(),
		"TABLEROCK_PROGRAM="+must(filepath.Abs(program))(t),
		"TABLEROCK_CONNECTION_STRING="+plain.connectionString,
		"TABLEROCK_HTTPS_CONNECTION_STRING="+secure.connectionString,
		"TABLEROCK_LOCALHOST_CONNECTION_STRING=AccountName=other;AccountKey="+key+";TableEndpoint="+localhost)
	killed := must(keeping(filepath.Join(t.TempDir(), "killed")))(t)
	if onDatabases() {
		cmd.Env = append(cmd.Env, "TABLEROCK_DATA_FLAGS="+strings.Join(killed, " "))
	}
	out, err := cmd.CombinedOutput()
	summary := string(out[max(0, strings.LastIndex(string(out), "\n# tests ")):])
	if err != nil {
		t.Errorf("node %s: %v\n%s", strings.Join(args, " "), err, failures(string(out)))
	}
	t.Log(strings.Join(strings.Fields(strings.ReplaceAll(summary, "#", ",")), " "))
}

// needNode skips a test without the JavaScript SDKs.
func needNode(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipping the JavaScript SDKs: there is no node")
	}
	if _, err := os.Stat(filepath.Join("js", "node_modules")); err != nil {
		t.Skip("skipping the JavaScript SDKs: run npm ci in e2e/js")
	}
}

// failures returns the failed tests in the output of node with their details, at most 20,000
// bytes.
func failures(tap string) string {
	var b strings.Builder
	indent := -1
	for line := range strings.Lines(tap) {
		text := strings.TrimLeft(line, " ")
		depth := len(line) - len(text)
		switch {
		case strings.HasPrefix(text, "not ok "):
			indent = depth
		case depth <= indent:
			indent = -1
		}
		if indent >= 0 {
			b.WriteString(line)
		}
	}
	return b.String()[:min(b.Len(), 20_000)]
}
