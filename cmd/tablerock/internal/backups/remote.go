package backups

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
	"github.com/tablerock-db/tablerock/store"
)

// Path is the path of a request for a backup on the listener for commands.
const Path = "/.backup"

// request asks a server for a backup.
type request struct {
	Dest    string `json:"dest"`    // on the machine of the server
	Account string `json:"account"` // "" for all that it serves
}

// message is a line of the response: a progress, or as the last line a result or an error,
// with the result of the accounts without one.
type message struct {
	Account string        `json:"account,omitempty"`
	Done    int64         `json:"done,omitempty"`
	Total   int64         `json:"total,omitempty"`
	Result  []backup.Info `json:"result,omitempty"`
	Error   string        `json:"error,omitempty"`
	Next    string        `json:"next,omitempty"`
	Kind    string        `json:"kind,omitempty"` // in kinds
}

// kinds are the errors that keep their meaning between the server and a command, those of the
// first ones if they have several.
var kinds = []struct {
	name string
	err  error
}{
	{"locked", store.ErrLocked},
	{"corrupt", store.ErrCorrupt},
	{"full", store.ErrNoSpace},
	{"unusable", store.ErrNotDatabase},
	{"denied", fs.ErrPermission},
	{"readonly", syscall.EROFS},
	{"missing", fs.ErrNotExist},
}

// kindOf returns the kind of err, or "".
func kindOf(err error) string {
	if errors.Is(err, backup.ErrNotBackup) {
		err = &kindError{err, store.ErrNotDatabase}
	}
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return kind.name
		}
	}
	return ""
}

// interval is the time between two lines of progress.
const interval = 200 * time.Millisecond

// Serve answers a request for a backup by create. The backup ends when the client is gone.
func Serve(w http.ResponseWriter, r *http.Request, create func(ctx context.Context, dest, account string, progress Progress) ([]backup.Info, error)) {
	const most = 64 << 10
	var q request
	if err := json.NewDecoder(io.LimitReader(r.Body, most)).Decode(&q); err != nil || r.Method != http.MethodPost {
		http.Error(w, "not a request for a backup", http.StatusBadRequest)
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // a backup can take hours
	out := json.NewEncoder(w)
	send := func(m message) {
		// An error means that the client is gone, which ends the context.
		_ = out.Encode(m)
		_ = control.Flush()
	}
	var last time.Time
	list, err := create(r.Context(), q.Dest, q.Account, func(account string, done, total int64) {
		if now := time.Now(); now.Sub(last) >= interval {
			last = now
			send(message{Account: account, Done: done, Total: total})
		}
	})
	if err != nil {
		send(message{Result: list, Error: err.Error(), Next: hint.Next(err), Kind: kindOf(err)})
		return
	}
	send(message{Result: list})
}

// ask asks the server that has the data directory for a backup. The error matches errNoServer
// if none answers there.
func ask(ctx context.Context, data string, q request, note local.Note, progress Progress) ([]backup.Info, error) {
	client, err := local.Client(ctx, data, note)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoServer, err)
	}
	defer client.CloseIdleConnections()
	body, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	ended := func(err error) error {
		if call := (*url.Error)(nil); errors.As(err, &call) { // its URL means nothing on a socket
			err = call.Err
		}
		err = fmt.Errorf("the server that has %s ended before the backup: %w", data, err)
		return hint.With(err, "repeat the command: what was copied is not copied again")
	}
	response, err := client.Do(r)
	if ctx.Err() != nil && err != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, ended(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
		return nil, fmt.Errorf("the server that has %s answers %s: %s", data, response.Status, bytes.TrimSpace(text))
	}
	lines := json.NewDecoder(bufio.NewReader(response.Body))
	for {
		var m message
		switch err := lines.Decode(&m); {
		case err == nil && m.Result != nil && m.Error == "": // the backups are made, also if ctx ends
			return m.Result, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, ended(err)
		case m.Error != "":
			return m.Result, m.failure()
		}
		progress(m.Account, m.Done, m.Total)
	}
}

var errNoServer = errors.New("no server answers")

func (m *message) failure() error {
	err := errors.New(m.Error)
	for _, kind := range kinds {
		if kind.name == m.Kind {
			err = &kindError{err, kind.err}
		}
	}
	return hint.With(err, m.Next)
}
