package serve

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReloadLimitsConnections adds accounts to a server, whose databases need open files that
// connections could have until then.
func TestReloadLimitsConnections(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 160, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(t.TempDir(), "accounts")
	writeFile(t, file, "first:"+flagKey, 0o600)
	r := start(t, "--accounts-file", file)
	for _, step := range []struct{ accounts, want string }{
		{"first second third fourth fifth", "connections=80"},
		{"first", "connections=80"}, // the databases of the others stay open
	} {
		var lines []string
		for name := range strings.FieldsSeq(step.accounts) {
			lines = append(lines, name+":"+flagKey)
		}
		writeFile(t, file, strings.Join(lines, "\n"), 0o600)
		r.hangUp(t, step.want)
	}
	if !strings.Contains(r.stderr.String(), "connections=112") {
		t.Errorf("the limit at the start is not 112: %s", r.stderr)
	}
}
