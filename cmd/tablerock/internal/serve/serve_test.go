package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// output collects the output of several goroutines.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed by the next Write, nil if nobody waits
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.written != nil {
		close(o.written)
		o.written = nil
	}
	return o.text.Write(p)
}

// waitFor waits until the output has text n times.
func (o *output) waitFor(t *testing.T, text string, n int) {
	t.Helper()
	for {
		o.mu.Lock()
		found := strings.Count(o.text.String(), text)
		if o.written == nil {
			o.written = make(chan struct{})
		}
		written := o.written
		o.mu.Unlock()
		if found >= n {
			return
		}
		select {
		case <-written:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(time.Minute):
			t.Fatalf("%q is %d times in the output, want %d: %s", text, found, n, o)
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// started is an output that closes done after the banner, when the server is ready.
type started struct {
	output
	once sync.Once
	done chan struct{}
}

func (s *started) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("connection")) {
		s.once.Do(func() { close(s.done) })
	}
	return s.output.Write(p)
}

// running is a server in this process.
type running struct {
	url, admin     string
	dir            string
	stdout, stderr *output
	credential     *sharedkey.Credential
	client         *http.Client
	stop           func()
}

// start runs a server with the flags until the test ends or stop is called.
func start(t *testing.T, flags ...string) *running {
	t.Helper()
	return startIn(t, nil, flags...)
}

// startIn is start with a Config.system.
func startIn(t *testing.T, system fs.FS, flags ...string) *running {
	t.Helper()
	dir := t.TempDir()
	out := &started{done: make(chan struct{})}
	r := &running{dir: dir, stdout: &out.output, stderr: new(output)}
	c := Config{Data: filepath.Join(dir, "data"), Version: "test", Stdout: out, Stderr: r.stderr, system: system}
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.Flags(set)
	c.Backend.Add(set)
	file := filepath.Join(dir, "ready.json")
	if err := set.Parse(append([]string{"--listen", "127.0.0.1:0", "--ready-file", file}, flags...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c) }()
	select {
	case <-out.done:
	case err := <-ended:
		cancel()
		t.Fatalf("serve ends with %v before it is ready; output: %s", err, r.stderr)
	}
	transport := &http.Transport{TLSClientConfig: r.trust(t)}
	r.client = &http.Client{Transport: transport}
	r.stop = sync.OnceFunc(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve ends with %v", err)
		}
	})
	t.Cleanup(r.stop)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var at ready
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	r.url, r.admin = at.URL, at.Admin
	if r.credential, err = sharedkey.NewCredential(developmentAccount, developmentKey); err != nil {
		t.Fatal(err)
	}
	return r
}

// trust returns a configuration that trusts the self-signed certificate of the server, or
// nil if there is none.
func (r *running) trust(t *testing.T) *tls.Config {
	text, err := os.ReadFile(filepath.Join(r.dir, "data", selfsigned.CertFile))
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		t.Fatalf("%s contains no certificate", selfsigned.CertFile)
	}
	return &tls.Config{RootCAs: roots}
}

// send sends a request. It signs the request unless its URL has a signature or it has an
// Authorization header.
func (r *running) send(t *testing.T, method, at, body string, header ...string) (int, string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Accept", "application/json;odata=nometadata")
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	if q.Header.Get("Authorization") == "" && !strings.Contains(q.URL.RawQuery, "sig=") {
		if err := r.credential.SignRequest(q, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := r.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

func (r *running) want(t *testing.T, status int, method, at, body string, header ...string) string {
	t.Helper()
	got, text := r.send(t, method, at, body, header...)
	if got != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, at, got, status, text)
	}
	return text
}

func protocols(one, two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(one)
	p.SetHTTP2(two)
	return p
}

// TestTLS sends requests to a server with a self-signed certificate, before and after a
// restart.
func TestTLS(t *testing.T) {
	r := start(t, "--self-signed", "--oauth", "basic")
	if !strings.HasPrefix(r.url, "https://") {
		t.Fatalf("url %s, want https", r.url)
	}
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	for proto, versions := range map[string]*http.Protocols{"HTTP/2.0": protocols(false, true), "HTTP/1.1": protocols(true, false)} {
		transport := &http.Transport{TLSClientConfig: r.trust(t), Protocols: versions}
		client := &http.Client{Transport: transport}
		answer, err := client.Get(r.url + "/Tables")
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.Proto != proto || answer.TLS.Version < tls.VersionTLS12 {
			t.Errorf("the server uses %s over TLS %x, want %s; error %v", answer.Proto, answer.TLS.Version, proto, err)
		}
		transport.CloseIdleConnections()
	}
	if _, err := tls.Dial("tcp", strings.Split(r.url, "/")[2], &tls.Config{RootCAs: r.trust(t).RootCAs, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("the server speaks TLS 1.1")
	}
	cert := filepath.Join(r.dir, "data", selfsigned.CertFile)
	for _, name := range []string{cert, filepath.Join(r.dir, "data", selfsigned.KeyFile)} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v; want only its owner to read it", name, info.Mode(), err)
		}
	}
	before, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	c := Config{SelfSigned: true, Data: filepath.Join(r.dir, "data"), Stderr: io.Discard}
	for _, want := range []struct {
		host string
		same bool
	}{{"127.0.0.1", true}, {"localhost", true}, {"", true}, {"tables.example", false}} { // "" listens on all addresses
		if _, err := c.certificate(want.host); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(cert)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, after) != want.same {
			t.Errorf("for host %q the certificate is unchanged: %v, want %v", want.host, bytes.Equal(before, after), want.same)
		}
	}
	if pair, err := (&Config{SelfSigned: true, InMemory: true}).certificate("127.0.0.1"); err != nil || pair.Leaf.VerifyHostname("acct.table.localhost") != nil {
		t.Errorf("in memory: %v", err)
	}
	given := Config{Cert: cert, Key: filepath.Join(r.dir, "data", selfsigned.KeyFile)}
	if _, err := given.certificate("anything"); err != nil {
		t.Errorf("given as --cert and --key: %v", err)
	}
}
