package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDeb unpacks the .deb, runs its program, and lets systemd check its unit.
func TestDeb(t *testing.T) {
	name := packageFile(t, ".deb")
	dir := t.TempDir()
	output(t, "dpkg-deb", "--extract", name, dir)
	program := filepath.Join(dir, "usr/bin/tablerock")
	if got := output(t, program, "version"); !strings.Contains(got, versionOf(t, name)) {
		t.Errorf("the program prints %s, want the version of %s", got, name)
	}
	for _, page := range []string{
		"usr/share/man/man1/tablerock.1.gz", "usr/share/man/man1/tablerock-serve.1.gz", "usr/share/doc/tablerock/copyright",
		"usr/share/bash-completion/completions/tablerock", "usr/share/zsh/vendor-completions/_tablerock",
		"usr/share/fish/vendor_completions.d/tablerock.fish", "usr/lib/sysusers.d/tablerock.conf",
	} {
		if info, err := os.Stat(filepath.Join(dir, page)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", page, err)
		}
	}
	control := t.TempDir()
	output(t, "dpkg-deb", "--control", name, control)
	if got, err := os.ReadFile(filepath.Join(control, "conffiles")); err != nil || string(got) != "/etc/default/tablerock\n" {
		t.Errorf("conffiles has %q, %v, want the file of settings", got, err)
	}
	for _, script := range []string{"postinst", "prerm", "postrm"} {
		info, err := os.Stat(filepath.Join(control, script))
		if err != nil || info.Mode()&0o100 == 0 {
			t.Errorf("%s cannot be run: %v", script, err)
		}
		output(t, "sh", "-n", filepath.Join(control, script))
	}
	testUnit(t, filepath.Join(dir, "usr/lib/systemd/system/tablerock.service"), program)
}

// testUnit checks a copy of the unit that starts the given program.
func testUnit(t *testing.T, unit, program string) {
	t.Helper()
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(text), "=/usr/bin/tablerock ") != 1 {
		t.Fatalf("the unit does not start /usr/bin/tablerock: %s", text)
	}
	verify := func(text string) error {
		copied := filepath.Join(t.TempDir(), "tablerock.service")
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", copied).CombinedOutput()
		t.Logf("systemd-analyze verify: %s", got)
		return err
	}
	good := strings.ReplaceAll(string(text), "/usr/bin/tablerock", program)
	if err := verify(good); err != nil {
		t.Error(err)
	}
	if err := verify(strings.ReplaceAll(string(text), "/usr/bin/tablerock", "/missing/tablerock")); err == nil {
		t.Error("a unit with a missing program passes")
	}
	for _, setting := range []string{"Type=notify", "NoNewPrivileges=yes", "ProtectSystem=strict", "User=tablerock", "ExecReload="} {
		if !strings.Contains(good, "\n"+setting) {
			t.Errorf("the unit lacks %s", setting)
		}
	}
}

// TestSettings starts no server: it checks that each variable of the file of settings is
// one of a flag of serve.
func TestSettings(t *testing.T) {
	text, err := os.ReadFile("files/default")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "#"), "="); ok && strings.HasPrefix(name, "TABLEROCK_") {
			testVariable(t, name)
			found++
		}
	}
	if found == 0 {
		t.Error("there are no variables")
	}
}

// testVariable checks that the variable sets a flag of serve.
func testVariable(t *testing.T, name string) {
	t.Helper()
	dir := t.TempDir()
	output(t, "dpkg-deb", "--extract", packageFile(t, ".deb"), dir)
	help := output(t, filepath.Join(dir, "usr/bin/tablerock"), "serve", "--help")
	flag := "--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "TABLEROCK_")), "_", "-")
	if !strings.Contains(help, flag+" ") {
		t.Errorf("%s: serve has no flag %s", name, flag)
	}
}
