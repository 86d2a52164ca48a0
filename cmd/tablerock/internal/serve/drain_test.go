package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/pflag"
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

// TestShutdownDuringBackup stops a server while a backup does not go on, as on a file system
// that hangs. The server takes no requests meanwhile.
func TestShutdownDuringBackup(t *testing.T) {
	dir := t.TempDir()
	stdout := &started{done: make(chan struct{})}
	stderr := &blocking{waits: "backup made", reached: make(chan struct{}), release: make(chan struct{})}
	c := Config{Data: filepath.Join(dir, "data"), Version: "test", Stdout: stdout, Stderr: stderr}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(set)
	service, admin := unusedPort(t), unusedPort(t)
	if err := set.Parse([]string{"--listen", service, "--admin", admin, "--backup-dir", filepath.Join(dir, "backups")}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	<-stdout.done
	<-stderr.reached
	cancel()
	late := time.After(10 * time.Second)
	for refused := false; !refused; {
		select {
		case <-late:
			t.Error("the server accepts connections while the backup does not end")
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
}
