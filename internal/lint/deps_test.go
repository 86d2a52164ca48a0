package lint

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// embedded are the modules, beside the standard library, that a program which
// embeds the engine compiles.
var embedded = []string{
	modulePath,
	"github.com/klauspost/compress",
	"github.com/cespare/xxhash/v2",
	"github.com/google/btree",
	"golang.org/x/sys",
}

// TestDependencies lists what engine and store compile on each system.
func TestDependencies(t *testing.T) {
	var roots []string
	for _, dir := range []string{"engine", "store"} {
		if len(packages(t)[dir]) > 0 {
			roots = append(roots, "./"+dir)
		}
	}
	if len(roots) == 0 {
		t.Fatal("neither engine nor store is here, and these are what an embedder imports")
	}
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			for _, p := range dependencies(t, system, roots) {
				if !slices.ContainsFunc(embedded, func(m string) bool { return anywhere(p, m) }) {
					t.Errorf("%s depend on %s on %s: an embedder would compile it; import it above engine, or in a nested module", strings.Join(roots, " and "), p, system)
				}
			}
		})
	}
}

// dependencies returns the packages outside the standard library that roots
// need on a system.
func dependencies(t *testing.T, system string, roots []string) []string {
	t.Helper()
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, roots...)
	cmd := exec.Command("go", args...)
	cmd.Dir = filepath.FromSlash(root)
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list -deps %s: %v\n%s", strings.Join(roots, " "), err, stderr.String())
	}
	return strings.Fields(string(out))
}
