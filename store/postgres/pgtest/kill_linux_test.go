package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestKillEndsNewProcesses kills a process that starts others all the time. The children of a
// process are known on Linux only.
func TestKillEndsNewProcesses(t *testing.T) {
	sleep := fmt.Sprintf("1.%09d", os.Getpid()) // which no other process has
	running := func() (n int) {
		list, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range list {
			if line, _ := os.ReadFile(path); string(line) == "sleep\x00"+sleep+"\x00" {
				n++
			}
		}
		return n
	}
	const script = `while kill -0 $PPID; do sleep "$1" & done`
	c := exec.Command("sh", "-c", script, "sh", sleep)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s := &Server{command: c, exited: make(chan struct{})}
	go func() {
		defer close(s.exited)
		_ = c.Wait()
	}()
	if err := poll("some processes", func() bool { return len(s.Processes()) > 5 }); err != nil {
		t.Error(err)
	}
	s.kill()
	if n := running(); n > 0 {
		t.Errorf("%d processes are left", n)
	}
}
