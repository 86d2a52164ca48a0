package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tablerock-db/tablerock/internal/explorer"
)

var loginLink = regexp.MustCompile(`http://[^\s]*login#once=[^\s]+`)

// linkOn reads the terminal until it shows a link that logs in.
func linkOn(t *testing.T, term *terminal) string {
	t.Helper()
	var text []byte
	for part := range term.written {
		text = append(text, part...)
		if i := bytes.LastIndexByte(text, '\n'); i >= 0 {
			if link := loginLink.Find(text[:i]); link != nil {
				return string(link)
			}
		}
	}
	t.Fatalf("the terminal got no link, but %q", text)
	return ""
}

// TestServeLink opens the link that "tablerock serve" prints on a terminal, and on nothing
// else.
func TestServeLink(t *testing.T) {
	term := openTerminal(t)
	ready := serveDirectory(t, t.TempDir(), term.slave)
	link := linkOn(t, term)
	if !strings.HasPrefix(link, ready.Admin+explorer.Root) {
		t.Errorf("the link is %q, want one to %s", link, ready.Admin)
	}
	var accounts struct{ Accounts []explorer.AccountInfo }
	if openPages(t, link).call("accounts", nil, &accounts); len(accounts.Accounts) != 1 || accounts.Accounts[0].Name != "devstoreaccount1" {
		t.Errorf("the accounts are %+v", accounts.Accounts)
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	t.Run("into a file", func(t *testing.T) {
		serveDirectory(t, t.TempDir(), file, "--access-log")
	})
	if text, err := os.ReadFile(file.Name()); err != nil || strings.Contains(string(text), "once=") {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestExploreServed runs "tablerock explore" on a terminal for the directory of a server. The
// browser gets a link to the pages of that server, has the time to read it although its start
// takes longer than the command needs, and runs on after ^C.
func TestExploreServed(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	ready := serveDirectory(t, data, io.Discard)
	opened := filepath.Join(dir, "opened")
	opener := "#!/bin/sh\nsleep 0.3\ncut -d' ' -f6 /proc/$$/stat > '" + opened + "' && cat \"$1\" >> '" + opened + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(opener), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", t.TempDir())
	term := openTerminal(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := run(ctx, []string{"explore", "--data", data}, nil, io.Discard, term.slave)
	cancel() // as at the end of the program
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	text, err := os.ReadFile(opened)
	if err != nil {
		t.Fatalf("the browser did not get a file that it could read: %v", err)
	}
	session, page, _ := strings.Cut(string(text), "\n")
	if own, err := unix.Getsid(0); err != nil || session == strconv.Itoa(own) {
		t.Errorf("the browser runs in session %s, which is that of the command: %v", session, err)
	}
	_, link, _ := strings.Cut(page, `content="0;url=`)
	link, _, _ = strings.Cut(link, `"`)
	if shown := linkOn(t, term); shown != link || !strings.HasPrefix(link, ready.Admin) {
		t.Errorf("the browser opens %q, and the terminal has %q; want one link to %s", link, shown, ready.Admin)
	}
	openPages(t, link)
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "tablerock-link-*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left: %v", left, err)
	}
}

// TestExploreCannotClose moves the directory of "tablerock explore" away after a write. The command
// exits with the error of the database, as "tablerock serve" does.
func TestExploreCannotClose(t *testing.T) {
	data := filepath.Join(t.TempDir(), "data")
	if code := run(t.Context(), []string{"table", "create", "Rows", "--data", data, "-q"}, nil, io.Discard, t.Output()); code != exitOK {
		t.Fatalf("table create exits with %d", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"explore", "--print-link", "--no-browser", "--data", data}, nil, in, &stderr)
		_ = in.Close() // never fails
	}()
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("explore prints %q: %v", link, err)
	}
	openPages(t, link).call("tables/create", map[string]string{"account": "devstoreaccount1", "table": "More"}, nil)
	// The database can make files meanwhile, beside which its directory cannot be removed.
	if err := os.Rename(data, data+".moved"); err != nil {
		t.Fatal(err)
	}
	cancel()
	if code := <-ended; code == exitOK || !strings.Contains(stderr.String(), "MANIFEST") {
		t.Errorf("explore exits with %d and says %q", code, stderr.String())
	}
}
