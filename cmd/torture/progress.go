package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// progress shows line on a terminal, several times a second, until the returned function
// is called. It shows nothing if w is no terminal.
func progress(w io.Writer, line func() string) (stop func()) {
	f, ok := w.(*os.File)
	if !ok {
		return func() {}
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	begin := time.Now()
	go func() {
		defer close(ended)
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Fprintf(w, "\r\x1b[K%s, %.0f s", line(), time.Since(begin).Seconds())
			case <-done:
				fmt.Fprint(w, "\r\x1b[K")
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// rate returns n per second since begin.
func rate(n int64, begin time.Time) float64 {
	return float64(n) / max(time.Since(begin).Seconds(), 1e-9)
}
