//go:build linux

package cluster

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// echo returns the port of a server that sends back what it reads, and the number of bytes
// that it has read.
func echo(t *testing.T) (port int, read *atomic.Int64) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	read = new(atomic.Int64)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 100)
				for {
					n, err := c.Read(buf)
					read.Add(int64(n))
					if err != nil {
						return
					}
					if _, err := c.Write(buf[:n]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, read
}

func testLink(t *testing.T) (*Link, *atomic.Int64, *atomic.Int64) {
	port, read := echo(t)
	cancels := new(atomic.Int64)
	l, err := startLink("test", port, 1, cancels)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	return l, read, cancels
}

func dial(t *testing.T, l *Link) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", l.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends text and returns what comes back within a time.
func ask(c net.Conn, text string, limit time.Duration) (string, error) {
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	buf := make([]byte, len(text))
	_, err := io.ReadFull(c, buf)
	return string(buf), err
}

func TestLinkForwards(t *testing.T) {
	l, _, cancels := testLink(t)
	begin := Now()
	c := dial(t, l)
	if got, err := ask(c, "hello", time.Minute); got != "hello" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	middle := Now()
	if !l.OpenIn(begin, middle) || l.OpenIn(begin-2, begin-1) {
		t.Error("the time of the connection is wrong")
	}
	l.Cut()
	if _, err := ask(c, "hello", time.Minute); err == nil {
		t.Error("the connection is open after Cut")
	}
	if cancels.Load() != 0 {
		t.Error("a CancelRequest was counted")
	}
}

func TestLinkHolds(t *testing.T) {
	l, read, _ := testLink(t)
	c := dial(t, l)
	if _, err := ask(c, "hello", time.Minute); err != nil {
		t.Fatal(err)
	}
	l.Set(Hold)
	if _, err := ask(c, "again", 200*time.Millisecond); !os.IsTimeout(err) {
		t.Errorf("a held connection gave %v", err)
	}
	if read.Load() != 5 {
		t.Errorf("the target has read %d bytes", read.Load())
	}
	l.Set(Forward)
	if _, err := ask(c, "again", time.Minute); err == nil || os.IsTimeout(err) {
		t.Errorf("a connection that was held gave %v, want a reset", err)
	}
	if got, err := ask(dial(t, l), "hello", time.Minute); got != "hello" || err != nil {
		t.Errorf("a new connection gave %q, %v", got, err)
	}
}

// TestLinkCuts checks that some connections are cut before the target gets a request, and
// some afterwards.
func TestLinkCuts(t *testing.T) {
	l, read, _ := testLink(t)
	l.Set(CutSome)
	before, after := 0, 0
	for range 100 {
		c := dial(t, l)
		for range 20 {
			had := read.Load()
			if _, err := ask(c, "x", time.Minute); err == nil {
				continue
			}
			deadline := time.Now().Add(50 * time.Millisecond)
			for read.Load() == had && time.Now().Before(deadline) {
				time.Sleep(time.Millisecond)
			}
			if read.Load() == had {
				before++
			} else {
				after++
			}
			break
		}
	}
	if before == 0 || after == 0 {
		t.Errorf("%d connections were cut before a request, %d before a response", before, after)
	}
}

func TestLinkCountsCancelRequests(t *testing.T) {
	l, _, cancels := testLink(t)
	request := binary.BigEndian.AppendUint32(nil, 16)
	request = binary.BigEndian.AppendUint32(request, 80877102)
	request = append(request, "keykeyke"...)
	if _, err := ask(dial(t, l), string(request), time.Minute); err != nil {
		t.Fatal(err)
	}
	if cancels.Load() != 1 {
		t.Errorf("%d CancelRequests were counted", cancels.Load())
	}
}

// TestProcesses checks that no descendant escapes: neither one that has lost its parent nor
// one that ignores signals or is stopped, and that the dead are reaped.
func TestProcesses(t *testing.T) {
	p, err := newProcesses()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command("/bin/sh", "-c", "trap '' TERM INT; setsid sh -c 'sleep 1000 & sleep 1000' & exit 0")
	cmd.Env = []string{"PATH=/usr/bin:/bin", "TORTURE_NODE=" + dir}
	log := filepath.Join(dir, "log")
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	parent, err := p.start(cmd, log)
	if err != nil {
		t.Fatal(err)
	}
	<-parent.ended
	var pids []int
	for len(pids) < 3 { // the second shell and two sleeps
		pids = marked("TORTURE_NODE=" + dir)
		time.Sleep(time.Millisecond)
	}
	if err := signalAll(pids[:1], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if got := marked("TORTURE_NODE=/other"); len(got) > 0 {
		t.Errorf("processes %v have another setting", got)
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	for _, s := range list() {
		if slices.Contains(pids, s.pid) && s.state != 'Z' {
			t.Errorf("process %d is left", s.pid)
		}
	}
}
