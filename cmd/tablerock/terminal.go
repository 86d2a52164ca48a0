package main

import (
	"io"
	"os"
	"sync"
	"unicode"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
)

// isTerminal reports whether people look at w.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && cwriter.IsTerminal(int(f.Fd()))
}

// bar shows progress on a terminal. A nil bar shows nothing.
type bar struct {
	container *mpb.Progress
	bar       *mpb.Bar
	mu        sync.Mutex
	rows      int64
}

// newBar returns a bar of total bytes, 0 if nobody knows how many; nil unless
// standard error is a terminal.
func (a *app) newBar(name string, total int64) *bar {
	if a.quiet || !isTerminal(a.stderr) {
		return nil
	}
	b := &bar{container: mpb.New(mpb.WithOutput(a.stderr))}
	rows := decor.Any(func(decor.Statistics) string {
		b.mu.Lock()
		defer b.mu.Unlock()
		return " " + count(b.rows) + " rows"
	})
	if total > 0 {
		b.bar = b.container.AddBar(
			total, mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(name+" "), decor.CountersKibiByte("% .1f / % .1f")),
			mpb.AppendDecorators(decor.Percentage(), rows, decor.Name(" "), decor.AverageETA(decor.ET_STYLE_GO)),
		)
		return b
	}
	b.bar = b.container.AddSpinner(
		0, mpb.BarRemoveOnComplete(),
		mpb.PrependDecorators(decor.Name(name+" "), decor.CurrentKibiByte("% .1f")), mpb.AppendDecorators(rows),
	)
	return b
}

// set shows how far the work has come.
func (b *bar) set(rows, bytes int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	b.rows = rows
	b.mu.Unlock()
	b.bar.SetCurrent(bytes)
}

// done takes the bar away.
func (b *bar) done() {
	if b == nil {
		return
	}
	b.bar.Abort(true)
	b.container.Wait()
}

// wide are the scripts whose characters take two places of a terminal.
var wide = []*unicode.RangeTable{unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana}

// places returns how many places of a terminal s takes.
func places(s string) int {
	n := 0
	for _, r := range s {
		n += placesOf(r)
	}
	return n
}

func placesOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.In(r, wide...) || 0x3000 <= r && r <= 0x303E || 0xFF01 <= r && r <= 0xFF60 || 0x1F300 <= r && r <= 0x1FAFF:
		return 2
	}
	return 1
}
