package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// terminal returns a pseudo terminal: the end of programs, and what they wrote to it once
// that end is closed.
func terminal(t *testing.T) (slave *os.File, written func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	number, unlock := uint32(0), int32(0)
	for request, arg := range map[uintptr]unsafe.Pointer{syscall.TIOCSPTLCK: unsafe.Pointer(&unlock), syscall.TIOCGPTN: unsafe.Pointer(&number)} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(arg)); errno != 0 {
			t.Fatal(errno)
		}
	}
	slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(master) // the error means that the slave is closed
		text <- string(all)
	}()
	return slave, func() string { return <-text }
}

// TestProgress runs every command with standard error on a terminal.
func TestProgress(t *testing.T) {
	for args, want := range map[string]string{
		"crash --states 50 --steps 4 --all 0": "0 crash states ",
		"errors --stride 3000 --count 1":      "0 failures at ",
		"rot --stride 2001":                   "0 damages, ",
		"kill --cycles 1":                     "0 of 1 kills",
		"planted --only wal-sync":             "0 of 1 planted bugs found",
	} {
		t.Run(args, func(t *testing.T) {
			slave, written := terminal(t)
			var out bytes.Buffer
			err := run(t.Context(), strings.Fields(args), &out, slave)
			slave.Close()
			text := written()
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if !strings.Contains(text, want) || !strings.Contains(text, " s") {
				t.Errorf("the terminal shows %q, want %q and the seconds in it", text, want)
			}
			if !strings.HasSuffix(text, clearLine) {
				t.Errorf("the terminal shows %q, want the line cleared at the end", text)
			}
		})
	}
}

// TestProgressBesideOutput runs a command that prints results while it shows progress on
// the same terminal: each result begins in the first column.
func TestProgressBesideOutput(t *testing.T) {
	slave, written := terminal(t)
	err := run(t.Context(), strings.Fields("planted --only wal-sync"), slave, slave)
	slave.Close()
	text := written()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	before, _, ok := strings.Cut(text, "wal-sync  ")
	if !ok || !strings.HasSuffix(before, clearLine) {
		t.Errorf("the terminal shows %q, want the line of progress cleared before the result", text)
	}
}
