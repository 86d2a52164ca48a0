package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a screen.
type terminal struct {
	master, slave *os.File
	written       chan []byte // what programs wrote and the echo of keys
	screen        [][]byte
	row, column   int
	shown         []byte // all that show has got
	cut           []byte // the beginning of a control sequence at its end
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

// escape matches the control sequences of a progress bar, cutEscape the beginning of one.
var (
	escape    = regexp.MustCompile(`^\x1b\[(\d*)([AJK])`)
	cutEscape = regexp.MustCompile(`^\x1b(\[\d*)?$`)
)

// show shows what was written. A read may end within a control sequence or an echo.
func (term *terminal) show(t *testing.T, text []byte) {
	term.shown = append(term.shown, text...)
	text, term.cut = append(term.cut, text...), nil
	for len(text) > 0 {
		for term.row >= len(term.screen) {
			term.screen = append(term.screen, nil)
		}
		line := &term.screen[term.row]
		n := 1
		switch m := escape.FindSubmatch(text); {
		case cutEscape.Match(text):
			term.cut = text
			return
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
			bar := progress.New(term.slave, "import", total, quantity.Count)
			bar.Set(10, 100)
			echoes := func() int { return bytes.Count(term.shown, []byte("^C")) }
			typed := false
			for text := range term.written {
				term.show(t, text)
				if term.row == 0 {
					continue // while it draws
				}
				line, below := string(term.screen[0]), string(term.screen[1])
				if !strings.HasPrefix(line, "import ") {
					t.Errorf("the screen is %q, want a bar that begins with import", term.screen)
				}
				if echoes() > 0 && below == "" {
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
				if term.show(t, text); echoes() > 1 {
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

// TestBar shows bytes in their unit, the share of a known total, and rows with their noun. A
// command that counts no bytes shows none.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		name        string
		total, rows int64
		bytes       int64
		want        string // a regular expression
	}{
		{"nothing read", 1 << 20, 0, 0, `^import 0 bytes / 1\.0 MiB \[.*\] 0 % 0 rows read `},
		{"some read", 1 << 20, 1234, 300 << 10, `^import 300\.0 KiB / 1\.0 MiB \[.*\] 29 % 1,234 rows read `},
		{"unknown total", 0, 1234, 3 << 20, `^import 3\.0 MiB .* 1,234 rows read *$`},
		{"no bytes", 0, 1234, 0, `^import  +[^ 0-9]+ +1,234 rows read *$`},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := openTerminal(t)
			bar := progress.New(term.slave, "import", c.total, quantity.Count).Counts("rows read")
			bar.Set(c.rows, c.bytes)
			last := ""
			for text := range term.written {
				term.show(t, text)
				if term.row == 0 {
					continue // while it draws
				}
				if last = string(term.screen[0]); regexp.MustCompile(c.want).MatchString(last) || len(term.shown) > 5000 {
					break
				}
			}
			bar.Done()
			term.slave.Close()
			for range term.written {
				continue
			}
			if !regexp.MustCompile(c.want).MatchString(last) {
				t.Errorf("the bar is %q, want %s", last, c.want)
			}
		})
	}
}

// TestTerminalReads shows text that is cut at every place.
func TestTerminalReads(t *testing.T) {
	text := []byte("import 1\n^C\x1b[1A\x1b[J\rimport 2\n")
	for cut := range len(text) {
		var term terminal
		term.show(t, text[:cut:cut])
		term.show(t, text[cut:])
		if len(term.screen) != 2 || string(term.screen[0]) != "import 2" || len(term.screen[1]) != 0 || !bytes.Contains(term.shown, []byte("^C")) {
			t.Errorf("cut at %d: the screen is %q", cut, term.screen)
		}
	}
}
