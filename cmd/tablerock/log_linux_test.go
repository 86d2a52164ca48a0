package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// TestServeWithoutReader runs a server whose log nobody reads any more, as after the end of the
// program behind its pipe. It goes on.
func TestServeWithoutReader(t *testing.T) {
	reader, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd := exec.Command("tablerock", "serve", "--in-memory", "--access-log", "--listen", "127.0.0.1:0", "--admin", "off")
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	log.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	fields := strings.Fields(line)
	if err != nil || len(fields) != 3 {
		t.Fatalf("the banner begins with %q, %v", line, err)
	}
	reader.Close()
	for range 2 {
		response, err := http.Get(fields[2] + "/Tables")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
