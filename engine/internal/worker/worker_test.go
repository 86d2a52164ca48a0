package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var errStep = errors.New("a step failed")

// afterFunc is Options.AfterFunc of the clock.
func afterFunc(d time.Duration, f func()) (stop func() bool) { return time.AfterFunc(d, f).Stop }

// start returns a Worker whose steps are those of step, and when each of them began.
func start(t *testing.T, step func(w *Worker, n int) (worked bool, err error), inPause func() error) (w *Worker, begun *[]time.Duration) {
	t.Helper()
	begin, begun := time.Now(), new([]time.Duration)
	w = New(Options{
		Step: func(context.Context) (bool, error) {
			*begun = append(*begun, time.Since(begin))
			return step(w, len(*begun)-1)
		},
		StepInPause: func(context.Context) error { return inPause() },
		Now:         time.Now,
		AfterFunc:   afterFunc,
		Logger:      slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	w.Start(ctx)
	t.Cleanup(func() {
		cancel()
		w.Join()
	})
	return w, begun
}

func check(t *testing.T, begun *[]time.Duration, seconds ...int) {
	t.Helper()
	synctest.Wait()
	var got []int
	for _, d := range *begun {
		got = append(got, int(d.Seconds()))
	}
	if !slices.Equal(got, seconds) {
		t.Errorf("steps began after %d seconds, want %d", got, seconds)
	}
}

func TestStepsWhileThereIsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begun := start(t, func(w *Worker, n int) (bool, error) {
			w.Succeeded(false)
			return n < 2, nil
		}, nil)
		time.Sleep(time.Hour)
		check(t, begun, 0, 0, 0)
		w.Wake()
		check(t, begun, 0, 0, 0, 3600)
	})
}

func TestPauses(t *testing.T) {
	for name, test := range map[string]struct {
		compaction bool
		want       []int
	}{
		"compaction": {true, []int{0, 1, 3, 7, 15, 31, 63, 123, 183}},
		"flush":      {false, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, begun := start(t, func(w *Worker, n int) (bool, error) {
					if n >= len(test.want)-1 {
						w.Succeeded(true)
						return false, nil
					}
					w.Failed(errStep, test.compaction)
					return false, errStep
				}, nil)
				time.Sleep(time.Hour)
				check(t, begun, test.want...)
			})
		})
	}
}

// TestPauseAfterSuccess lets compactions fail again after all work was done. The pauses begin anew.
func TestPauseAfterSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, begun := start(t, func(w *Worker, n int) (bool, error) {
			if n == 3 || n == 6 {
				w.Succeeded(true)
				return false, nil
			}
			w.Failed(errStep, true)
			return false, errStep
		}, func() error { return nil })
		time.Sleep(time.Hour)
		check(t, begun, 0, 1, 3, 7)
		w.Wake()
		time.Sleep(time.Minute)
		check(t, begun, 0, 1, 3, 7, 3600, 3601, 3603)
	})
}

// TestPauseEnds wakes a worker in the pause after a compaction that failed, lets a step in the pause fail, and ends another
// pause by Retry.
func TestPauseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inPause := []error{nil, nil, errStep}
		w, begun := start(t, func(w *Worker, n int) (bool, error) {
			if n < 5 { // the next pause takes 16 seconds
				w.Retry()
			}
			w.Failed(errStep, true)
			return false, errStep
		}, func() error {
			err := inPause[0]
			inPause = inPause[1:]
			return err
		})
		time.Sleep(time.Second)
		check(t, begun, 0, 0, 0, 0, 0, 0)
		w.Wake()
		check(t, begun, 0, 0, 0, 0, 0, 0)
		time.Sleep(time.Second)
		w.Wake()
		check(t, begun, 0, 0, 0, 0, 0, 0)
		w.Wake()
		check(t, begun, 0, 0, 0, 0, 0, 0, 2)
		if len(inPause) > 0 {
			t.Errorf("%d steps in the pause are left", len(inPause))
		}
	})
}

// TestFailureLog fails a step each second, of one kind and then of another, with a success between. The log has the first
// failure of each kind, and one a minute.
func TestFailureLog(t *testing.T) {
	var text strings.Builder
	logger := slog.New(slog.NewTextHandler(&text, nil))
	l, now := failureLog{}, time.Unix(0, 0)
	for _, step := range []struct {
		seconds    int
		compaction bool
		succeeds   bool
		want       int // messages
	}{
		{1, false, false, 1},
		{59, false, false, 0},
		{60, false, false, 1},
		{2, true, false, 1},
		{1, false, false, 1},
		{1, false, true, 1},
		{120, false, false, 2},
	} {
		if step.succeeds {
			l = failureLog{}
		}
		text.Reset()
		for range step.seconds {
			l.add(errStep, step.compaction, now, logger)
			now = now.Add(time.Second)
		}
		if n := strings.Count(text.String(), `level=ERROR msg="background work failed" cause="a step failed" failures=`); n != step.want {
			t.Errorf("%+v: %d messages: %s", step, n, text.String())
		}
	}
}

// TestStatus notes the ends of steps. A flush that succeeds does not end the failure of a compaction.
func TestStatus(t *testing.T) {
	w, other := New(Options{}), errors.New("another")
	for i, step := range []struct {
		note func()
		want Status
	}{
		{func() { w.Succeeded(false) }, Status{}},
		{func() { w.Failed(errStep, false) }, Status{errStep, false, 1}},
		{func() { w.Succeeded(false) }, Status{nil, false, 1}},
		{func() { w.Failed(errStep, true) }, Status{errStep, true, 2}},
		{func() { w.Succeeded(false) }, Status{errStep, true, 2}},
		{func() { w.Failed(other, false) }, Status{other, false, 3}},
		{func() { w.Failed(errStep, true) }, Status{errStep, true, 4}},
		{func() { w.Succeeded(true) }, Status{nil, false, 4}},
	} {
		step.note()
		if got := w.Status(); got != step.want {
			t.Errorf("after step %d: %+v, want %+v", i, got, step.want)
		}
	}
}

// TestWait waits until a step has failed, and then until ctx ends.
func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, looks := New(Options{}), 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		wait := func(until func(Status) (bool, error)) {
			go func() {
				ended <- w.Wait(ctx, func(s Status) (bool, error) {
					looks++
					return until(s)
				})
			}()
			synctest.Wait()
		}
		wait(func(s Status) (bool, error) { return false, s.Err })
		w.Wake()
		synctest.Wait()
		w.Failed(errStep, true)
		if err := <-ended; err != errStep || looks != 3 {
			t.Errorf("%v after %d calls, want the error of the step after 3", err, looks)
		}
		wait(func(Status) (bool, error) { return true, nil })
		if err := <-ended; err != nil {
			t.Error(err)
		}
		wait(func(Status) (bool, error) { return false, nil })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%v after the end of ctx", err)
		}
	})
}
