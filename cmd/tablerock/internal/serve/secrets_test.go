package serve

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// Secrets of the server and of its clients.
const (
	flagKey = "c29tZSBvdGhlciBrZXkgb2YgbXkgb3duLCBsb25nIGVub3VnaCBmb3IgdXMh"
	fileKey = "YSB0aGlyZCBrZXkgdGhhdCBzdGFuZHMgaW4gYSBmaWxlIGFuZCBub3doZXJl"
	wrong   = "d3JvbmcgYnV0IG9mIHRoZSByaWdodCBsZW5ndGggISE="
	token   = "eyJhbGciOiJub25lIn0.eyJhIjoiYiJ9.c2ln"
	content = "content of an entity"
)

// TestNoSecretsInOutput sends secrets in every part of a request, right and wrong, and
// searches the output, the metrics and the profiles of the server for them.
func TestNoSecretsInOutput(t *testing.T) {
	list := filepath.Join(t.TempDir(), "accounts")
	if err := os.WriteFile(list, []byte("filed:"+fileKey+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		flags []string
	}{
		{"text", []string{"--account", "mine:" + flagKey}},
		{"json", []string{"--log-format", "json", "--accounts-file", list}},
		{"TLS", []string{"--account", "mine:" + flagKey, "--self-signed", "--oauth", "basic"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			debug := filepath.Join(t.TempDir(), "debug.log")
			r := start(t, append(c.flags, "--access-log", "--debug", debug)...)
			signature := r.sendSecrets(t)
			admin := r.adminOutput(t)
			r.stop()
			debugLog, err := os.ReadFile(debug)
			if err != nil {
				t.Fatal(err)
			}
			for _, word := range []string{"CreateTable", "AuthenticationFailed", "InvalidInput", "Batch"} {
				if !strings.Contains(r.stderr.String(), word) {
					t.Errorf("the log has no %s: %s", word, r.stderr)
				}
			}
			// The banner contains the public key only.
			out := strings.ReplaceAll(r.stdout.String(), "AccountKey="+developmentKey, "")
			// A profile can contain the name of the function that signs the requests.
			admin = strings.ReplaceAll(admin, "sharedkey.(*Credential).SharedKey", "")
			for _, secret := range []string{
				flagKey, fileKey, developmentKey, developmentKey[:20], signature, url.QueryEscape(signature), "sig=",
				"SharedKey ", "SharedKeyLite ", wrong, "Bearer ", "Basic ", token[:8], "AccountKey", content, url.QueryEscape(content), url.PathEscape(content),
			} {
				for name, text := range map[string]string{
					"standard output": out, "standard error": r.stderr.String(), "the debug log": string(debugLog), "the admin listener": admin,
				} {
					if i := strings.Index(text, secret); i >= 0 {
						t.Errorf("%q is in %s: %q", secret, name, text[max(0, i-200):min(len(text), i+200)])
					}
				}
			}
		})
	}
}

// sendSecrets sends requests that contain secrets, most of them invalid, and returns the
// signature of those that have one in their URL.
func (r *running) sendSecrets(t *testing.T) (signature string) {
	t.Helper()
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Tables", `{"TableName":"Orders"}`)
	r.want(t, http.StatusCreated, http.MethodPost, r.url+"/Orders", `{"PartitionKey":"p","RowKey":"1","Text":"`+content+`"}`)
	sas, err := r.credential.TableSAS(sharedkey.TableSAS{Table: "Orders", Permissions: "r", Expiry: "2099-01-01T00:00:00Z"})
	if err != nil {
		t.Fatal(err)
	}
	query, err := url.ParseQuery(sas)
	if err != nil {
		t.Fatal(err)
	}
	r.want(t, http.StatusOK, http.MethodGet, r.url+"/Orders()?"+sas, "")
	r.want(t, http.StatusForbidden, http.MethodPost, r.url+"/Orders?"+sas, `{"PartitionKey":"p","RowKey":"2"}`)
	r.want(t, http.StatusForbidden, http.MethodGet, r.url+"/Other()?"+sas, "")
	r.want(t, http.StatusBadRequest, http.MethodGet, r.url+"/Orders('"+url.PathEscape(content)+"?"+sas, "")
	now := time.Now().UTC().Format(http.TimeFormat)
	for _, authorization := range []string{
		"SharedKey devstoreaccount1:" + wrong, "SharedKeyLite devstoreaccount1:" + wrong, "Bearer " + token, "Basic " + wrong, wrong,
	} {
		if status, text := r.send(t, http.MethodGet, r.url+"/Tables", "", "Authorization", authorization, "X-Ms-Date", now); status < http.StatusBadRequest {
			t.Errorf("with Authorization %q: status %d: %s", authorization, status, text)
		}
	}
	connection := "AccountName=devstoreaccount1;AccountKey=" + developmentKey
	for _, body := range []string{
		connection,
		`{"PartitionKey":"p","RowKey":"2","` + connection + `":1}`,
		`{"PartitionKey":"p","RowKey":"2","N@odata.type":"Edm.Int32","N":"` + content + `"}`,
	} {
		r.want(t, http.StatusBadRequest, http.MethodPost, r.url+"/Orders", body)
	}
	batch := "--b\r\nContent-Type: application/http\r\n\r\nGET " + r.url + "/Orders()?" + sas + " HTTP/1.1\r\n" +
		"Authorization: Bearer " + token + "\r\n\r\n" + content + "\r\n--b--\r\n"
	r.send(t, http.MethodPost, r.url+"/$batch", batch, "Content-Type", "multipart/mixed; boundary=b")
	r.send(t, http.MethodPost, r.url+"/$batch", content, "Content-Type", "multipart/mixed; boundary="+wrong)
	r.want(t, http.StatusBadRequest, http.MethodGet, r.url+"/Orders()?$filter="+url.QueryEscape("Text eq '"+content+"' and"), "")
	r.send(t, http.MethodGet, r.url+"/Orders(PartitionKey='"+url.PathEscape(content)+"',RowKey='1')", "", "If-Match", wrong)
	r.send(t, http.MethodGet, r.url+"/Orders()?NextPartitionKey="+url.QueryEscape(content), "", "X-Ms-Version", wrong)
	for _, key := range []string{developmentKey, wrong} {
		r.send(t, http.MethodGet, r.url+"/"+key, "")
		r.send(t, http.MethodGet, strings.Replace(r.url, developmentAccount, key, 1)+"/Orders", "")
	}
	return query.Get("sig")
}

// adminOutput returns the responses of the admin listener.
func (r *running) adminOutput(t *testing.T) string {
	t.Helper()
	var seen strings.Builder
	for _, path := range []string{
		"/healthz", "/readyz", "/metrics", "/debug/pprof/", "/debug/pprof/symbol", "/debug/pprof/trace?seconds=0.01",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/goroutine?debug=1", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1",
		"/debug/pprof/block?debug=1", "/debug/pprof/mutex?debug=1", "/debug/pprof/threadcreate?debug=1",
	} {
		seen.WriteString(r.want(t, http.StatusOK, http.MethodGet, r.admin+path, ""))
	}
	for _, path := range []string{"/debug/pprof/cmdline", "/debug/pprof/cmdline?debug=1", "/debug/vars", "/"} {
		seen.WriteString(r.want(t, http.StatusNotFound, http.MethodGet, r.admin+path, ""))
	}
	return seen.String()
}
