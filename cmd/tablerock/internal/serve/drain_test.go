package serve

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
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
