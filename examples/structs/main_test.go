package main

import (
	"context"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	if want := "cheap: nail 9000\nleft: anvil 1 heavy\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
