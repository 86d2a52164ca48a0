package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// snippet returns the program in the first block of a language in a page, changed to the
// address of s.
func snippet(t *testing.T, page, language string, s *server) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, program, ok := strings.Cut(string(text), "\n```"+language+"\n")
	program, _, ok2 := strings.Cut(program, "\n```\n")
	if !ok || !ok2 {
		t.Fatalf("%s has no block of %s", page, language)
	}
	program = strings.ReplaceAll(program, "http://127.0.0.1:10002", strings.TrimSuffix(s.url, "/devstoreaccount1"))
	// The short form of the connection string has a fixed port, and allows plain HTTP.
	return strings.ReplaceAll(program, `"UseDevelopmentStorage=true", "Orders"`, `"`+s.connectionString+`", "Orders", { allowInsecureConnection: true }`)
}

// runSnippet runs a program in a subfolder of dir, in which its imports resolve, and returns
// its output.
func runSnippet(t *testing.T, dir, name, program string, command ...string) string {
	t.Helper()
	own, err := os.MkdirTemp(dir, "readme-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(own) })
	if err := os.WriteFile(filepath.Join(own, name), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), command[0], append(command[1:], name)...)
	cmd.Dir = own
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

// TestReadme runs the client programs of docs/serve.md, twice: a program must
// survive that its table exists.
func TestReadme(t *testing.T) {
	const runs = 2
	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	t.Run("Go", func(t *testing.T) {
		for range runs {
			got := runSnippet(t, ".", "main.go", snippet(t, "../docs/serve.md", "golang", s), "go", "run")
			for _, want := range []string{`"PartitionKey":"tokyo"`, `"RowKey":"0001"`, `"Guests":4`, `"odata.etag":`} {
				if !strings.Contains(got, want) {
					t.Errorf("output %s, want %s in it", got, want)
				}
			}
		}
	})
	t.Run("JavaScript", func(t *testing.T) {
		if _, err := os.Stat("js/node_modules"); err != nil {
			t.Skip("npm ci --prefix js installs the JavaScript clients")
		}
		for range runs {
			if got := runSnippet(t, "js", "orders.mjs", snippet(t, "../docs/serve.md", "js", s), "node"); got != "0002 99.5\n" {
				t.Errorf("output %q, want %q", got, "0002 99.5\n")
			}
		}
	})
}

// TestByHand runs the example of docs/serve.md for clients without a library.
func TestByHand(t *testing.T) {
	for _, program := range []string{"bash", "curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is needed: %v", program, err)
		}
	}
	s := start(t, filepath.Join(t.TempDir(), "data"), nil)
	got := runSnippet(t, t.TempDir(), "ask.sh", snippet(t, "../docs/serve.md", "bash", s), "bash")
	if want := `{"value":[{"PartitionKey":"tokyo","RowKey":"0001","Timestamp":"`; !strings.Contains(got, want) || !strings.HasSuffix(got, `"Guests":4}]}`) {
		t.Errorf("output %s, want %s... with 4 guests at the end", got, want)
	}
}
