// Package progress shows the progress of a command on a terminal.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
)

// IsTerminal reports whether w is a terminal.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && cwriter.IsTerminal(int(f.Fd()))
}

// echoColumns is the width of the echo of several interrupts.
const echoColumns = 16

// Interval is the time between two drawings of a bar.
var Interval = 150 * time.Millisecond

// Bar shows progress on a terminal. A nil Bar shows nothing.
type Bar struct {
	w         io.Writer
	container *mpb.Progress
	bar       *mpb.Bar
	mu        sync.Mutex
	rows      int64
	unit      string             // of rows
	format    func(int64) string // of rows
}

// New returns a bar on w for total bytes, 0 if the total is not known. With a nil format
// it shows no rows. It returns nil if w is no terminal.
func New(w io.Writer, name string, total int64, format func(int64) string) *Bar {
	if !IsTerminal(w) {
		return nil
	}
	b := &Bar{w: w, container: mpb.New(mpb.WithOutput(w), mpb.WithRefreshRate(Interval)), unit: "entities", format: format}
	// The terminal echoes ^C at the cursor, so the next drawing does not begin in the
	// first column. The carriage return makes it overwrite the whole line.
	label := decor.Name("\r" + name + " ")
	rows := decor.Any(func(decor.Statistics) string {
		if b.format == nil {
			return ""
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		return " " + b.format(b.rows) + " " + b.unit
	})
	size := decor.Any(func(s decor.Statistics) string {
		switch {
		case total > 0:
			return sizeText(s.Current) + " / " + sizeText(s.Total)
		case s.Current > 0:
			return sizeText(s.Current)
		}
		return "" // the command counts no bytes, or none so far
	})
	if total > 0 {
		b.bar = b.container.AddBar(
			total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(label, size),
			mpb.AppendDecorators(decor.Percentage(), rows, decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)),
		)
		return b
	}
	b.bar = b.container.AddSpinner(
		0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(label, size), mpb.AppendDecorators(rows),
	)
	return b
}

// sizeText returns a number of bytes in the largest unit below it.
func sizeText(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("% .1f", decor.SizeB1024(n))
}

// Counts sets the noun of the rows, which are entities otherwise, and returns b.
func (b *Bar) Counts(unit string) *Bar {
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.unit = unit
	}
	return b
}

// Set shows the rows and bytes that are done.
func (b *Bar) Set(rows, bytes int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.rows = rows
	b.mu.Unlock()
	b.bar.SetCurrent(bytes)
}

// Watch shows the rows and bytes that done returns, which it calls at each Interval. The
// function that it returns ends that and removes the bar.
func (b *Bar) Watch(done func() (rows, bytes int64)) (end func()) {
	if b == nil {
		return func() {}
	}
	stop := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() {
		tick := time.NewTicker(Interval)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				b.Set(done())
			}
		}
	})
	return func() {
		close(stop)
		watcher.Wait()
		b.Done()
	}
}

// Done removes the bar.
func (b *Bar) Done() {
	if b == nil {
		return
	}
	b.bar.Abort(true)
	b.container.Wait()
	// Clear the columns of the last drawing that the echo of ^C kept, without control
	// sequences, which not every console has. An error means that the terminal is gone.
	_, _ = io.WriteString(b.w, "\r"+strings.Repeat(" ", echoColumns)+"\r")
}

// Columns returns the width of the terminal w, 0 if w is no terminal or its width is not
// known.
func Columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := cwriter.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Counter counts the bytes that are written through it.
type Counter struct {
	W io.Writer
	N int64
}

// Write writes p to W.
func (c *Counter) Write(p []byte) (int, error) {
	n, err := c.W.Write(p)
	c.N += int64(n)
	return n, err
}
