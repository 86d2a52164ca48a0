package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

const (
	// readTime is how long a browser has to read the file of a link after the program that
	// opens the file has ended. That program may only pass the name to a browser.
	readTime = 3 * time.Second
	// openTime limits the time of that program, which can be the browser itself.
	openTime = 30 * time.Second
)

// opening is a program that opens a link in the browser of the user. The methods of nil do
// nothing.
type opening struct {
	dir   string     // of the file with the link
	ended chan error // of the program
}

// openBrowser opens a link in the browser of the user. Other users can see the arguments of
// a process, so that the browser gets a file that only this user can read. The browser runs
// on when this program ends. Close the result, which removes the file.
func openBrowser(link string) (*opening, error) {
	dir, err := os.MkdirTemp("", "tablerock-link-*") // with access for this user only
	if err != nil {
		return nil, err
	}
	o := &opening{dir: dir, ended: make(chan error, 1)}
	name := filepath.Join(dir, "open.html")
	page := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%s\">", link) // a link has no quotes
	if err := os.WriteFile(name, []byte(page), 0o600); err != nil {
		o.close()
		return nil, err
	}
	command := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if command == nil {
		command = []string{"xdg-open"}
	}
	program := exec.Command(command[0], append(command[1:], name)...)
	detach(program)
	if err := program.Start(); err != nil {
		o.close()
		return nil, err
	}
	go func() { o.ended <- program.Wait() }()
	return o, nil
}

// wait returns when the browser has had the time to read the file, or ctx is done.
func (o *opening) wait(ctx context.Context) {
	if o == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	select {
	case err := <-o.ended:
		if err != nil {
			return // there is no browser
		}
	case <-ctx.Done():
		return
	}
	select {
	case <-time.After(readTime):
	case <-ctx.Done():
	}
}

// close removes the file.
func (o *opening) close() {
	if o != nil {
		_ = os.RemoveAll(o.dir) // the link works only once
	}
}
