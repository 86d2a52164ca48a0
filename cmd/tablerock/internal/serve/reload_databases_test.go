package serve

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestReloadDatabases moves an account to another database of PostgreSQL. The old one then can go: the server is
// ready without it, and has no metrics of it. So is it with one that only a refused file of accounts has.
func TestReloadDatabases(t *testing.T) {
	server := pgtest.Start(t, "fsync=off")
	var urls []string
	for range 3 {
		url := server.NewDatabase(t)
		if err := postgres.Init(t.Context(), url, &postgres.Options{AllowAsync: true}); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, url)
	}
	file := filepath.Join(t.TempDir(), "accounts")
	r := (*running)(nil)
	for _, step := range []struct{ name, text, log, served string }{
		{"at the start", "shop:" + flagKey + "@" + urls[0], "", urls[0]},
		{"a file that is refused", "sales:" + flagKey + "@" + urls[2] + "\nshop:" + flagKey + "@" + urls[2] + "_missing", "the accounts stay as they were", urls[0]},
		{"another database", "shop:" + flagKey + "@" + urls[1], "read the accounts again", urls[1]},
		{"the first database again", "shop:" + flagKey + "@" + urls[0], "read the accounts again", urls[0]},
	} {
		writeFile(t, file, step.text, 0o600)
		if step.log == "" {
			r = start(t, "--accounts-file", file, "--allow-async")
		} else {
			r.hangUp(t, step.log)
		}
		for _, url := range urls {
			pgtest.Exec(t, url, "ALTER TABLE tr_entities RENAME TO away")
			want := http.StatusOK
			if url == step.served {
				want = http.StatusServiceUnavailable
			}
			if got, text := get(t, r.admin+"/readyz"); got != want {
				t.Errorf("%s: /readyz is %d %q while the tables of %s are away, want %d", step.name, got, text, url, want)
			}
			pgtest.Exec(t, url, "ALTER TABLE away RENAME TO tr_entities")
			_, text := get(t, r.admin+"/metrics")
			if got := strings.Contains(text, `tablerock_backend_max_connections{database="`+url+`"}`); got != (url == step.served) {
				t.Errorf("%s: the metrics have the database %s: %v", step.name, url, got)
			}
		}
	}
}
