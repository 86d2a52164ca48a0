package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/backups"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/local"
)

// TestShutdownFinishesRequests stops a server while its only request waits for the rest of
// its body.
func TestShutdownFinishesRequests(t *testing.T) {
	r := start(t)
	r.want(t, http.StatusOK, http.MethodGet, r.admin+"/readyz", "")
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	at, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"PartitionKey":"p","RowKey":"1"}`
	q, err := http.NewRequest(http.MethodPost, r.url+"/Orders", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	if err := r.credential.SignRequest(q, time.Now()); err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", at.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\nExpect: 100-continue\r\n", q.URL.Path, at.Host, len(body))
	for name := range q.Header {
		fmt.Fprintf(conn, "%s: %s\r\n", name, q.Header.Get(name))
	}
	fmt.Fprint(conn, "\r\n")
	answers := bufio.NewReader(conn)
	if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") {
		t.Fatalf("before the body, the server sends %q, error %v", line, err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.stop()
	}()
	for status := http.StatusOK; status != http.StatusServiceUnavailable; {
		status, _ = r.send(t, http.MethodGet, r.admin+"/readyz", "")
	}
	r.want(t, http.StatusOK, http.MethodGet, r.admin+"/healthz", "")
	select {
	case <-stopped:
		t.Fatal("the server is gone with a request unanswered")
	default:
	}
	fmt.Fprint(conn, body)
	for {
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatalf("no response: %v", err)
		}
		if strings.HasPrefix(line, "HTTP/1.1 201 ") {
			break
		}
	}
	<-stopped
	if conn, err := net.Dial("tcp", at.Host); err == nil {
		conn.Close()
		t.Error("the server still listens")
	}
}

// TestShutdownDuringBackup stops a server while a backup, one for a command, or a reload does not go on,
// as on a file system that hangs. The server takes no requests meanwhile.
func TestShutdownDuringBackup(t *testing.T) {
	for _, c := range []struct {
		waits           string
		hangUp, command bool
	}{{"backup made", false, false}, {"SIGHUP: read the accounts again", true, false}, {"backup made for a command", false, true}} {
		t.Run(c.waits, func(t *testing.T) {
			dir := t.TempDir()
			accounts := filepath.Join(dir, "accounts")
			writeFile(t, accounts, "first:"+flagKey, 0o600)
			stdout := &started{done: make(chan struct{})}
			stderr := &blocking{waits: c.waits, reached: make(chan struct{}), release: make(chan struct{})}
			config := Config{Data: filepath.Join(dir, "data"), Version: "test", Stdout: stdout, Stderr: stderr}
			set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			config.Flags(set)
			service, admin, file := unusedPort(t), unusedPort(t), filepath.Join(dir, "ready.json")
			if err := set.Parse([]string{
				"--listen", service, "--admin", admin, "--backup-dir", filepath.Join(dir, "backups"), "--accounts-file", accounts, "--ready-file", file,
			}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- Run(ctx, config) }()
			<-stdout.done
			if c.hangUp {
				raise(t, syscall.SIGHUP)
			}
			if c.command {
				command := startBackup(t, config.Data, filepath.Join(dir, "other"))
				defer func() { <-command }()
			}
			<-stderr.reached
			cancel()
			late := time.After(time.Minute)
			for refused := false; !refused; {
				select {
				case <-late:
					t.Error("the server accepts connections while it waits")
					refused = true
				default:
					conn, err := net.Dial("tcp", service)
					if err == nil {
						conn.Close()
					}
					refused = errors.Is(err, syscall.ECONNREFUSED)
				}
			}
			if status, text := get(t, "http://"+admin+"/readyz"); status != http.StatusServiceUnavailable {
				t.Errorf("/readyz returns %d %q, want 503", status, text)
			}
			http.DefaultClient.CloseIdleConnections()
			close(stderr.release)
			if err := <-ended; err != nil {
				t.Errorf("serve ends with %v", err)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Stat of the ready file: %v, want that it is removed", err)
			}
		})
	}
}

// startBackup has the server of data make a backup in dest, as a command does.
func startBackup(t *testing.T, data, dest string) (done <-chan struct{}) {
	t.Helper()
	client, err := local.Client(t.Context(), data, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.CloseIdleConnections()
		response, err := client.Post("http://localhost"+backups.Path, "application/json", strings.NewReader(fmt.Sprintf(`{"dest": %q}`, dest)))
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body) // the server may end before
		response.Body.Close()
	}()
	return ended
}

// TestWarnLate ends servers in time and late: the second one says what it waits for.
func TestWarnLate(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out output
			s := &service{log: slog.New(slog.NewTextHandler(&out, nil))}
			ctx, cancel := context.WithCancel(t.Context())
			end := s.warnLate(ctx)
			<-time.After(time.Hour)
			cancel()
			if late {
				<-time.After(2*drainTime + time.Second)
			}
			end()
			synctest.Wait()
			if got := strings.Contains(out.String(), "a second signal"); got != late {
				t.Errorf("late: %v; the log is %q", late, &out)
			}
		})
	}
}
