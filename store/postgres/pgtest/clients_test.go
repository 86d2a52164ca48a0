package pgtest_test

import (
	"flag"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

var clients = flag.Bool("clients", false, "run TestClients")

// TestClients runs the tests of the module e2e, which are those of the clients for Go and
// JavaScript, with servers that keep their data in PostgreSQL.
func TestClients(t *testing.T) {
	if !*clients {
		t.Skip("it takes a minute: run it by -clients")
	}
	server := pgtest.Start(t, "fsync=off", "max_connections=400")
	databases := make([]string, 40) // more than the tests start servers for
	for i := range databases {
		databases[i] = server.NewDatabase(t)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout", "4m", "./...")
	cmd.Dir = "../../../e2e"
	cmd.Env = append(os.Environ(), "TABLEROCK_E2E_DATABASES="+strings.Join(databases, " "))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("the tests of e2e: %v\n%s", err, out)
	}
	t.Logf("%s", out)
	used := server.Exec(t, "SELECT count(*) FROM pg_stat_database WHERE datname LIKE 'tr_%' AND tup_inserted > 20")
	if n, err := strconv.Atoi(used[0]); err != nil || n < 5 {
		t.Errorf("servers wrote to %s databases, error %v; want 5 or more", used, err)
	}
}
