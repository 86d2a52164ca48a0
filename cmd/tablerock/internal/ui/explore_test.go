package ui_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/ui"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/store"
)

// TestExploreStopped explores a directory whose server accepts connections and does not answer, as
// one that is stopped.
func TestExploreStopped(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	db, err := engine.Open(filepath.ToSlash(filepath.Join(data, "mine")), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := local.Listen(data)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	e := ui.Explore{Listen: "127.0.0.1:0", NoBrowser: true, Stdout: io.Discard, Stderr: io.Discard}
	err = e.Run(t.Context(), nil, data, nil)
	if !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "locked by pid") || !strings.HasSuffix(err.Error(), "; that server does not answer") {
		t.Errorf("explore ends with %v", err)
	}
}

// TestExploreDirectory opens the link of tablerock explore as a browser does: its token logs
// in once, and the cookie of the login shows the database.
func TestExploreDirectory(t *testing.T) {
	data := t.TempDir()
	db, err := engine.Open(filepath.ToSlash(filepath.Join(data, "mine")), engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	e := ui.Explore{Listen: "127.0.0.1:0", PrintLink: true, NoBrowser: true, Version: "test", Stdout: in, Stderr: io.Discard}
	go func() {
		err := e.Run(ctx, nil, data, nil)
		_ = in.CloseWithError(io.EOF) // never fails
		ended <- err
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("explore ends with %v", err)
		}
	}()
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	at, token, found := strings.Cut(strings.TrimSpace(link), "login#once=")
	if !found {
		t.Fatalf("the link is %q", link)
	}
	send := func(method, path, body string, cookies []*http.Cookie) (*http.Response, string) {
		t.Helper()
		q, err := http.NewRequestWithContext(t.Context(), method, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		q.Header.Set("Origin", strings.TrimSuffix(at, "/ui/"))
		for _, c := range cookies {
			q.AddCookie(c)
		}
		response, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response, string(text)
	}
	if response, _ := send(http.MethodGet, "login", "", nil); response.StatusCode != http.StatusOK {
		t.Errorf("the page of the link: %s", response.Status)
	}
	if response, _ := send(http.MethodGet, "api/accounts", "", nil); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the accounts without a login: %s", response.Status)
	}
	login := `{"once":"` + token + `"}`
	response, text := send(http.MethodPost, "api/login", login, nil)
	if response.StatusCode != http.StatusOK || len(response.Cookies()) != 1 {
		t.Fatalf("the login: %s %s", response.Status, text)
	}
	cookies := response.Cookies()
	if response, text := send(http.MethodGet, "api/accounts", "", cookies); response.StatusCode != http.StatusOK || !strings.Contains(text, `"name":"mine"`) {
		t.Errorf("the accounts: %s %s", response.Status, text)
	}
	if response, text := send(http.MethodPost, "api/login", login, nil); response.StatusCode != http.StatusForbidden || len(response.Cookies()) > 0 {
		t.Errorf("the second use of the link: %s %s", response.Status, text)
	}
}
