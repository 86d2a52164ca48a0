package main

import (
	"bytes"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/engine"
)

// TestInterruptedAtServer interrupts a command while the server that has the directory does not
// answer it.
func TestInterruptedAtServer(t *testing.T) {
	data := t.TempDir()
	db, err := engine.Open(filepath.ToSlash(filepath.Join(data, "devstoreaccount1")), engine.Options{SegmentBytes: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := local.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		interrupt()
		w.WriteHeader(http.StatusNotFound)
	})}
	served := make(chan error)
	go func() { served <- srv.Serve(l) }()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"table", "create", "Rows", "--data", data}, nil, &stdout, &stderr)
	if code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, %s; want %d", code, &stderr, exitInterrupted)
	}
	_ = srv.Close()
	<-served
}
