package fuzz

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStageFailsOnFindings runs .ci/fuzz with programs that print what Go's fuzzer
// prints. Only the end of a time limit that it reports as a failure is none.
func TestStageFailsOnFindings(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("this system has no bash")
	}
	script, err := filepath.Abs(filepath.Join("..", ".ci", "fuzz"))
	if err != nil {
		t.Fatal(err)
	}
	const began = "fuzz: elapsed: 0s, gathering baseline coverage: 0/24 completed\n"
	const written = "    Failing input written to testdata/fuzz/FuzzX/83d7\n    To re-run:\n    go test -run=FuzzX/83d7\n"
	for _, c := range []struct {
		name, output string
		status       int // of the program
		fails        bool
	}{
		{"pass", began + "PASS\n", 0, false},
		{"end of the time limit", began + "--- FAIL: FuzzX (3.07s)\n    context deadline exceeded\nFAIL\n", 1, false},
		{"finding", began + "--- FAIL: FuzzX (0.41s)\n    --- FAIL: FuzzX (0.00s)\n        x_test.go:9: wrong\n    \n" + written + "FAIL\n", 1, true},
		{"finding with that message", began + "--- FAIL: FuzzX (0.41s)\n    context deadline exceeded\n" + written + "FAIL\n", 1, true},
		{"finding in the corpus", began + "failure while testing seed corpus entry: FuzzX/seed#0\n--- FAIL: FuzzX (0.41s)\n    x_test.go:9: wrong\nFAIL\n", 1, true},
		{"killed worker", began + "--- FAIL: FuzzX (1s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\nFAIL\n", 1, true},
		{"panic without a target", "panic: boom\n", 2, true},
		{"silence", "", 2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "output"), []byte(c.output), 0o600); err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(dir, "fuzz.test")
			text := "#!" + bash + "\ncat output\nexit " + string(rune('0'+c.status)) + "\n"
			if err := os.WriteFile(program, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(bash, script, dir, program, "FuzzX", "-test.fuzztime", "1s").CombinedOutput()
			if failed := err != nil; failed != c.fails {
				t.Errorf("fails: %v (%v), want %v; output:\n%s", failed, err, c.fails, out)
			}
			if c.fails && !strings.Contains(string(out), "FuzzX of "+dir+" fails") {
				t.Errorf("the output does not name the target:\n%s", out)
			}
		})
	}
}
