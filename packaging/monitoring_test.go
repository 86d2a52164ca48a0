package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// scrape starts the server of the package, sends it a request, and returns its metrics.
func scrape(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	output(t, "dpkg-deb", "--extract", packageFile(t, ".deb"), dir)
	at, admin := freeAddress(t), freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(dir, "usr/bin/tablerock"), "serve",
		"--data", filepath.Join(dir, "data"), "--backup-dir", filepath.Join(dir, "backups"), "--listen", at, "--admin", admin)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it reports the signal
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := http.Get("http://" + admin + "/readyz"); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the server is not ready within a minute")
		}
	}
	if got := createTable(t, at); got != http.StatusNoContent {
		t.Fatalf("the creation of a table returns %d", got)
	}
	answer, err := http.Get("http://" + admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestMonitoring checks the alert rules, the dashboard and the page on metrics against the
// metrics of a running server: no expression names a metric that the server lacks, and the
// page names all of Tablerock's.
func TestMonitoring(t *testing.T) {
	text := scrape(t)
	known := map[string]bool{"up": true}
	for _, m := range regexp.MustCompile(`(?m)^([a-z_:]+)[{ ]`).FindAllStringSubmatch(text, -1) {
		known[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (tablerock_backend_\S+)`).FindAllStringSubmatch(text, -1) {
		known[m[1]] = true // without a database of PostgreSQL it has no sample
	}
	used := map[string]bool{}
	check := func(where, expression string) {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
		if err != nil {
			t.Errorf("%s: %s: %v", where, expression, err)
			return
		}
		parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
			if s, ok := n.(*parser.VectorSelector); ok {
				used[s.Name] = true
				if !known[s.Name] {
					t.Errorf("%s: the server has no metric %s", where, s.Name)
				}
			}
			return nil
		})
	}
	checkAlerts(t, check)
	checkDashboard(t, check)
	if len(used) < 20 {
		t.Errorf("only the metrics %v are used", used)
	}
	page, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (tablerock_\S+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(page), "`"+m[1]+"`") {
			t.Errorf("docs/operate.md lacks the metric %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile("`(tablerock_[a-z_]+)`").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(text, "\n# TYPE "+m[1]+" ") && !strings.HasPrefix(text, "# TYPE "+m[1]+" ") {
			t.Errorf("docs/operate.md has the metric %s, the server has not", m[1])
		}
	}
}

// checkAlerts checks the expressions of the rules, and that the page says what to do.
func checkAlerts(t *testing.T, check func(where, expression string)) {
	t.Helper()
	rules, errs := rulefmt.ParseFile("monitoring/alerts.yaml", false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	page, err := os.ReadFile("../docs/operate.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			check(r.Alert, r.Expr)
			if r.Annotations["summary"] == "" || !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
				t.Errorf("%s has the annotations %v and the labels %v", r.Alert, r.Annotations, r.Labels)
			}
			if !strings.Contains(string(page), "`"+r.Alert+"`") {
				t.Errorf("docs/operate.md lacks the alert %s", r.Alert)
			}
		}
	}
}

// checkDashboard checks the expressions of the panels, with values for Grafana's variables.
func checkDashboard(t *testing.T, check func(where, expression string)) {
	t.Helper()
	text, err := os.ReadFile("monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title, Description string
			GridPos            struct{ X, Y, W, H int }
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$account", ".*")
	places := map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if len(p.Targets) == 0 || p.Description == "" || p.GridPos.X+p.GridPos.W > 24 {
			t.Errorf("the panel %q has %d expressions, the description %q, and the place %+v", p.Title, len(p.Targets), p.Description, p.GridPos)
		}
		at := [2]int{p.GridPos.X, p.GridPos.Y}
		if other, taken := places[at]; taken {
			t.Errorf("the panels %q and %q are at the same place", p.Title, other)
		}
		places[at] = p.Title
		for _, target := range p.Targets {
			check(p.Title, variables.Replace(target.Expr))
		}
	}
}
