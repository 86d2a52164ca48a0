package upload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/tablerock-db/tablerock/internal/explorer/internal/upload"
	"github.com/tablerock-db/tablerock/internal/tempfile"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

const text = "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}\n{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}\n"

func chunk(text string) func() io.Reader {
	return func() io.Reader { return strings.NewReader(text) }
}

// rowsOf counts the entities of the file until it ends.
func rowsOf(ctx context.Context, u *upload.Upload, f transfer.Format) (rows int, err error) {
	r, err := u.Open(ctx, transfer.ReadOptions{Format: f})
	for err == nil {
		if _, err = r.Next(); err == nil {
			rows++
		}
	}
	return rows, err
}

// TestReceive sends chunks in order, again, too early, and at the end.
func TestReceive(t *testing.T) {
	u := upload.New(int64(len(text)))
	u.Begin(func() { t.Error("the upload is idle") })
	result := make(chan string)
	go func() {
		rows, err := rowsOf(t.Context(), u, transfer.JSONL)
		result <- fmt.Sprint(rows, err)
	}()
	other := (*upload.OffsetError)(nil)
	for at := 0; at < len(text); at += 10 {
		for _, wrong := range []int{at + 1, at - 10} {
			if err := u.Receive(int64(wrong), chunk("x")); !errors.As(err, &other) || other.Next != int64(at) {
				t.Errorf("offset %d instead of %d: error %v", wrong, at, err)
			}
		}
		if err := u.Receive(int64(at), chunk(text[at:min(at+10, len(text))])); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-result; got != "2 EOF" {
		t.Errorf("the file has %s, want 2 EOF", got)
	}
	if err := u.Receive(u.Size(), nil); err != nil || u.Received() != u.Size() {
		t.Errorf("the last chunk again: %v, %d bytes", err, u.Received())
	}
}

// TestReceiveOneByOne refuses a chunk while another one is received, and continues after one that
// was cut.
func TestReceiveOneByOne(t *testing.T) {
	u := upload.New(int64(len(text)))
	u.Begin(func() {})
	go func() { _, _ = rowsOf(t.Context(), u, transfer.JSONL) }()
	lost := errors.New("connection lost")
	err := u.Receive(0, func() io.Reader {
		if err := u.Receive(0, chunk("x")); err != upload.ErrBusy {
			t.Errorf("a second chunk: error %v", err)
		}
		return io.MultiReader(strings.NewReader(text[:5]), iotest.ErrReader(lost))
	})
	if !errors.Is(err, lost) || u.Received() != 5 {
		t.Errorf("error %v after %d bytes", err, u.Received())
	}
	if err := u.Receive(5, chunk(text[5:])); err != nil {
		t.Error(err)
	}
}

// TestEnd ends files that chunks and a reader still use.
func TestEnd(t *testing.T) {
	for _, files := range []*tempfile.Files{nil, tempfile.New(1000)} {
		u := upload.New(100)
		if files != nil {
			var err error
			if u, err = upload.NewParquet(100, files); err != nil {
				t.Fatal(err)
			}
		}
		u.Begin(func() {})
		if err := u.Receive(0, func() io.Reader { u.End(); return strings.NewReader("x") }); err != upload.ErrEnded {
			t.Errorf("a chunk at the end: %v", err)
		}
		if err := u.Receive(0, chunk("x")); err != upload.ErrEnded {
			t.Errorf("a chunk after the end: %v", err)
		}
	}
	u := upload.New(100)
	u.Begin(func() {})
	read := make(chan error)
	go func() {
		_, err := rowsOf(t.Context(), u, transfer.JSONL)
		read <- err
	}()
	u.End()
	if err := <-read; !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the reader gets %v", err)
	}
}

// TestParquet waits for the whole file, or the end of ctx.
func TestParquet(t *testing.T) {
	files := tempfile.New(100)
	if _, err := upload.NewParquet(101, files); !errors.Is(err, tempfile.ErrLimit) {
		t.Errorf("a file above the limit: %v", err)
	}
	u, err := upload.NewParquet(12, files)
	if err != nil {
		t.Fatal(err)
	}
	defer u.End()
	u.Begin(func() {})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := u.Open(ctx, transfer.ReadOptions{}); err != context.Canceled {
		t.Errorf("the reader of a part gets %v", err)
	}
	for at, part := range []string{"PAR1 n", "o PAR1"} {
		if err := u.Receive(int64(6*at), chunk(part)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := rowsOf(t.Context(), u, transfer.Parquet); err == nil || !strings.Contains(err.Error(), "Parquet") {
		t.Errorf("the reader gets %v", err)
	}
}

// TestWriteError reports a temporary file that cannot be written to the reader and the chunk.
func TestWriteError(t *testing.T) {
	u, err := upload.NewParquet(10, tempfile.New(10))
	if err != nil {
		t.Fatal(err)
	}
	u.Begin(func() {})
	if err := u.Receive(0, chunk("more than ten bytes")); !errors.Is(err, tempfile.ErrLimit) {
		t.Errorf("the chunk gets %v", err)
	}
	if _, err := u.Open(t.Context(), transfer.ReadOptions{}); !errors.Is(err, tempfile.ErrLimit) {
		t.Errorf("the reader gets %v", err)
	}
	u.End()
}

// TestIdle ends the wait between two chunks after ten minutes, and when the file is complete.
func TestIdle(t *testing.T) {
	for _, c := range []struct {
		name   string
		size   int64
		chunks int // of one byte, one each nine minutes
		idle   time.Duration
	}{
		{"empty", 0, 0, 0},
		{"nothing comes", 3, 0, 10 * time.Minute},
		{"two chunks", 3, 2, 28 * time.Minute},
		{"complete", 3, 3, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u, begin, idle := upload.New(c.size), time.Now(), time.Duration(0)
				u.Begin(func() { idle = time.Since(begin) })
				go func() { _, _ = rowsOf(t.Context(), u, transfer.JSONL) }()
				for i := range c.chunks {
					time.Sleep(9 * time.Minute)
					if err := u.Receive(int64(i), chunk("\n")); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if idle != c.idle {
					t.Errorf("idle after %v, want %v", idle, c.idle)
				}
				u.End()
			})
		})
	}
}
