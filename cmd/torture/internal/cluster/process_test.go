//go:build linux

package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// family starts processes that each make a file when their parent ends.
const family = `import os, sys, time
reader, writer = os.pipe()
for i in range(100):
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        open(sys.argv[1] + "/seen", "w").close()
        os._exit(0)
open(sys.argv[1] + "/ready", "w").close()
time.sleep(600)`

// TestKillAtOnce kills many processes, none of which sees the end of another one.
func TestKillAtOnce(t *testing.T) {
	if _, err := os.Stat(python); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	exists := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	c := exec.Command(python, "-c", family, dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	pids := func() []int { return descendants(c.Process.Pid) }
	t.Cleanup(func() { _ = signalAll(pids(), 9) })
	for deadline := time.Now().Add(time.Minute); !exists("ready"); {
		if time.Now().After(deadline) {
			t.Fatal("the processes did not start")
		}
		time.Sleep(5 * time.Millisecond)
	}
	all := pids()
	if len(all) != 101 {
		t.Fatalf("there are %d processes, want 101", len(all))
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	// The children lose their parent, so their ids are those of before.
	err := killWhile(func() (left []int) {
		for _, s := range list() {
			if s.state != 'Z' && slices.Contains(all, s.pid) {
				left = append(left, s.pid)
			}
		}
		slices.Sort(left) // the parent first
		return left
	})
	if err != nil {
		t.Fatal(err)
	}
	<-ended
	if exists("seen") {
		t.Error("a process ran after the end of its parent")
	}
}
