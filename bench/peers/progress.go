package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows what runs: on a terminal in one line that it replaces, else in lines.
type progress struct {
	out      io.Writer
	terminal bool
	started  time.Time
	total    int
	done     int // tasks that were started, the last included
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

// begin shows how many tasks there are.
func (p *progress) begin(total, skipped int) {
	p.started, p.total = time.Now(), total
	if skipped > 0 {
		fmt.Fprintf(p.out, "%d results are in the file already\n", skipped)
	}
}

// step shows the task that ends with the next call of step or end.
func (p *progress) step(what string) {
	p.show(what)
	p.done++
}

// show shows what runs, and an estimate of the time left.
func (p *progress) show(what string) {
	text := fmt.Sprintf("%d/%d %s", p.done+1, p.total, what)
	if p.done > 0 {
		left := time.Since(p.started) / time.Duration(p.done) * time.Duration(p.total-p.done)
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	if p.terminal {
		fmt.Fprintf(p.out, "\r\x1b[K%s", text)
		return
	}
	fmt.Fprintln(p.out, text)
}

// clear removes the line of a terminal before other output.
func (p *progress) clear() {
	if p.terminal {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}

// end shows the time of the run.
func (p *progress) end() {
	p.clear()
	fmt.Fprintf(p.out, "%d results in %v\n", p.done, time.Since(p.started).Round(time.Second))
}
