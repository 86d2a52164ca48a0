package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// clearLine clears the line of a terminal and moves the cursor to its first column.
const clearLine = "\r\x1b[K"

// progress is a line on a terminal that shows how far a command is, several times a second.
// A nil progress shows nothing.
type progress struct {
	w     io.Writer
	line  func() string
	begin time.Time
	done  chan struct{}
	ended sync.WaitGroup
	mu    sync.Mutex // held while writing
}

// startProgress shows line until stop is called. It returns nil if w is no terminal.
func startProgress(w io.Writer, line func() string) *progress {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	p := &progress{w: w, line: line, begin: time.Now(), done: make(chan struct{})}
	p.draw()
	p.ended.Go(p.run)
	return p
}

func (p *progress) run() {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.draw()
		case <-p.done:
			return
		}
	}
}

func (p *progress) draw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%s%s, %.0f s", clearLine, p.line(), time.Since(p.begin).Seconds())
}

// above clears the line and calls print, which may write whole lines to the same terminal.
func (p *progress) above(print func() error) error {
	if p == nil {
		return print()
	}
	p.mu.Lock()
	fmt.Fprint(p.w, clearLine)
	err := print()
	p.mu.Unlock()
	p.draw()
	return err
}

// stop clears the line for good.
func (p *progress) stop() {
	if p == nil {
		return
	}
	close(p.done)
	p.ended.Wait()
	fmt.Fprint(p.w, clearLine)
}

// rate returns n per second since begin.
func rate(n int64, begin time.Time) float64 {
	return float64(n) / max(time.Since(begin).Seconds(), 1e-9)
}
