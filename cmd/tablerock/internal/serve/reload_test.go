package serve

import (
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/selfsigned"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// hangUp sends SIGHUP to this process and waits until the server logs a line with text
// once more.
func (r *running) hangUp(t *testing.T, text string) {
	t.Helper()
	before := strings.Count(r.stderr.String(), text)
	raise(t, syscall.SIGHUP)
	r.stderr.waitFor(t, text, before+1)
}

// raise sends a signal to this process.
func raise(t *testing.T, signal os.Signal) {
	t.Helper()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// status returns the status of a query of the account's tables with the key.
func (r *running) status(t *testing.T, account, key string) int {
	t.Helper()
	credential, err := sharedkey.NewCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	one := *r
	one.credential = credential
	status, _ := one.send(t, http.MethodGet, strings.Replace(r.url, developmentAccount, account, 1)+"/Tables", "")
	return status
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}

// TestReloadAccounts changes the accounts file of a running server. A file with an error
// changes nothing.
func TestReloadAccounts(t *testing.T) {
	newKey := base64.StdEncoding.EncodeToString([]byte("a key that replaces the first one"))
	file := filepath.Join(t.TempDir(), "accounts")
	writeFile(t, file, "first:"+flagKey+"\n", 0o600)
	r := start(t, "--accounts-file", file)
	const done, kept = "read the accounts again", "the accounts stay as they were"
	for _, step := range []struct {
		name, text              string
		mode                    os.FileMode
		log                     string // "" without SIGHUP
		oldKey, newKey, another int    // statuses
	}{
		{"at the start", "first:" + flagKey, 0o600, "", 200, 403, 403},
		{"two keys and another account", "first:" + flagKey + ":" + newKey + "\nanother:" + fileKey, 0o600, done, 200, 200, 200},
		{"one key", "first:" + newKey + "\nanother:" + fileKey, 0o600, done, 403, 200, 200},
		{"a line without a key", "first:" + flagKey + "\nanother", 0o600, kept, 403, 200, 200},
		{"a short key", "first:" + flagKey + "\nanother:c2VjcmV0", 0o600, kept, 403, 200, 200},
		{"twice the same account", "first:" + flagKey + "\nfirst:" + flagKey, 0o600, kept, 403, 200, 200},
		{"a file for everybody", "first:" + flagKey, 0o644, kept, 403, 200, 200},
		{"an empty file", "\n", 0o600, kept, 403, 200, 200},
		{"no account", "# none\n", 0o600, done, 403, 403, 403},
		{"both again", "first:" + flagKey + "\nanother:" + fileKey, 0o600, done, 200, 403, 200},
	} {
		writeFile(t, file, step.text, step.mode)
		if step.log != "" {
			r.hangUp(t, step.log)
		}
		for _, q := range []struct {
			account, key string
			want         int
		}{{"first", flagKey, step.oldKey}, {"first", newKey, step.newKey}, {"another", fileKey, step.another}, {developmentAccount, developmentKey, 200}} {
			if got := r.status(t, q.account, q.key); got != q.want {
				t.Errorf("%s: account %s with key %.8s: status %d, want %d", step.name, q.account, q.key, got, q.want)
			}
		}
		if _, text := get(t, r.admin+"/metrics"); strings.Contains(text, `tablerock_engine_tables{account="another"}`) != (step.another == 200) {
			t.Errorf("%s: the metrics have the account another: %v", step.name, step.another != 200)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	r.hangUp(t, kept)
	if got := r.status(t, "first", flagKey); got != http.StatusOK {
		t.Errorf("without the file: status %d, want 200", got)
	}
	http.DefaultClient.CloseIdleConnections()
	r.stop()
	for _, secret := range []string{flagKey, fileKey, newKey, "c2VjcmV0"} {
		if strings.Contains(r.stderr.String(), secret) {
			t.Errorf("the log has the key %s: %s", secret, r.stderr)
		}
	}
}

// TestReloadReadyFile replaces the key of the connection string.
func TestReloadReadyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accounts")
	writeFile(t, file, developmentAccount+":"+flagKey, 0o600)
	r := start(t, "--accounts-file", file)
	writeFile(t, file, developmentAccount+":"+fileKey, 0o600)
	r.hangUp(t, "read the accounts again")
	text, err := os.ReadFile(filepath.Join(r.dir, "ready.json"))
	if err != nil || !strings.Contains(string(text), fileKey) {
		t.Errorf("the ready file is %s, error %v; want the new key in it", text, err)
	}
}

// TestReloadCertificate replaces the certificate of a running server. A file with an error
// changes nothing.
func TestReloadCertificate(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func() {
		t.Helper()
		certPEM, keyPEM, err := selfsigned.New("127.0.0.1")
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, cert, string(certPEM), 0o600)
		writeFile(t, key, string(keyPEM), 0o600)
	}
	renew()
	r := start(t, "--cert", cert, "--key", key)
	serial := func() string {
		t.Helper()
		conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", strings.Split(r.url, "/")[2], &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	renew()
	if got := serial(); got != first {
		t.Errorf("before SIGHUP the server has certificate %s, want %s", got, first)
	}
	r.hangUp(t, "read the certificate again")
	second := serial()
	if second == first {
		t.Error("after SIGHUP the server has the first certificate")
	}
	writeFile(t, cert, "no certificate", 0o600)
	r.hangUp(t, "the certificate stays as it was")
	if got := serial(); got != second {
		t.Errorf("after SIGHUP with a bad file the server has certificate %s, want %s", got, second)
	}
}

// TestHangUpWithoutFiles sends SIGHUP to a server that has nothing to read again.
func TestHangUpWithoutFiles(t *testing.T) {
	r := start(t, "--in-memory")
	r.hangUp(t, "SIGHUP")
	if got := r.status(t, developmentAccount, developmentKey); got != http.StatusOK {
		t.Errorf("status %d, want 200", got)
	}
}

// TestPublishAtEnd ends a server before a reload makes its accounts known: it does not become
// ready again.
func TestPublishAtEnd(t *testing.T) {
	s := &service{Config: &Config{}, admin: &admin{}, dbs: databases{{}}}
	s.unpublish()
	if err := s.publish(); err != nil || s.admin.serving.Load() != nil {
		t.Errorf("the server has %v databases, error %v; want none", s.admin.serving.Load(), err)
	}
}
