package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a screen.
type terminal struct {
	master, slave *os.File
	written       chan []byte // what programs wrote and the echo of keys
	screen        [][]byte
	row, column   int
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{master: master, slave: slave, written: make(chan []byte, 1000)}
	go func() {
		defer close(term.written)
		for {
			buf := make([]byte, 4096)
			n, err := master.Read(buf)
			if n > 0 {
				term.written <- buf[:n]
			}
			if err != nil {
				return // the slave is closed
			}
		}
	}()
	return term
}

// escape matches the control sequences of a progress bar.
var escape = regexp.MustCompile(`^\x1b\[(\d*)([AJK])`)

// show shows what was written.
func (term *terminal) show(t *testing.T, text []byte) {
	for len(text) > 0 {
		for term.row >= len(term.screen) {
			term.screen = append(term.screen, nil)
		}
		line := &term.screen[term.row]
		n := 1
		switch m := escape.FindSubmatch(text); {
		case m != nil:
			n = len(m[0])
			switch count, _ := strconv.Atoi(string(m[1])); m[2][0] {
			case 'A':
				term.row = max(0, term.row-count)
			case 'J':
				term.screen = term.screen[:term.row+1]
				fallthrough
			case 'K':
				*line = (*line)[:min(term.column, len(*line))]
			}
		case text[0] == '\r':
			term.column = 0
		case text[0] == '\n':
			if term.row++; term.row == len(term.screen) {
				term.screen = append(term.screen, nil)
			}
		case text[0] == 0x1b:
			t.Errorf("unknown control sequence %.10q", text)
		default:
			for len(*line) <= term.column {
				*line = append(*line, ' ')
			}
			(*line)[term.column] = text[0]
			term.column++
		}
		text = text[n:]
	}
}

// TestControlC types ^C while a progress bar is shown, which the terminal echoes at the
// cursor. The next drawing is whole, and nothing remains before the next message.
func TestControlC(t *testing.T) {
	for name, total := range map[string]int64{"bar": 1000, "spinner": 0} {
		t.Run(name, func(t *testing.T) {
			term := openTerminal(t)
			bar := newProgressBar(term.slave, "import", total)
			bar.Set(10, 100)
			typed, echoed := false, false
			for text := range term.written {
				term.show(t, text)
				echoed = echoed || bytes.Contains(text, []byte("^C"))
				if term.row == 0 {
					continue // while it draws
				}
				line, below := string(term.screen[0]), string(term.screen[1])
				if !strings.HasPrefix(line, "import ") {
					t.Errorf("the screen is %q, want a bar that begins with import", term.screen)
				}
				if echoed && below == "" {
					break // it was drawn again
				}
				if !typed {
					if _, err := term.master.Write([]byte{3}); err != nil {
						t.Fatal(err)
					}
					typed = true
				}
			}
			// Once more, right before the end.
			if _, err := term.master.Write([]byte{3}); err != nil {
				t.Fatal(err)
			}
			for text := range term.written {
				if term.show(t, text); bytes.Contains(text, []byte("^C")) {
					break
				}
			}
			bar.Done()
			fmt.Fprintln(term.slave, "tablerock: interrupted")
			term.slave.Close()
			for text := range term.written {
				term.show(t, text)
			}
			if got := strings.TrimRight(string(term.screen[0]), " "); got != "tablerock: interrupted" {
				t.Errorf("the screen is %q, want only the message", term.screen)
			}
		})
	}
}
