package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// packages returns the directory of the packages: TABLEROCK_PACKAGES, or one that this test
// makes for this system.
var packages = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("TABLEROCK_PACKAGES"); dir != "" {
		return dir, nil
	}
	dir, err := os.MkdirTemp("", "tablerock-packages-")
	if err != nil {
		return "", err
	}
	made = dir
	return dir, run(context.Background(), []string{"-root", "..", "-out", dir, "-platforms", "linux/" + runtime.GOARCH})
})

// made is a directory to remove at the end.
var made string

func TestMain(m *testing.M) {
	code := m.Run()
	if made != "" {
		os.RemoveAll(made)
	}
	os.Exit(code)
}

// TestRefusedFlags checks that nothing is built for a system without packages, or for a system
// whose flag is missing.
func TestRefusedFlags(t *testing.T) {
	for _, args := range [][]string{{"linux/amd64"}, {"-platforms", "linux/arm"}, {"-platforms", "x/amd64"}, {"-platforms", ""}, {"-version", "x"}} {
		out := filepath.Join(t.TempDir(), "dist")
		err := run(t.Context(), append([]string{"-root", "..", "-out", out}, args...))
		if _, statErr := os.Stat(out); err == nil || statErr == nil {
			t.Errorf("%q: got %v, and packages: %v", args, err, statErr == nil)
		}
	}
}

// packageFile returns the package for this machine with the extension.
func packageFile(t *testing.T, extension string) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the tests run the packages of Linux")
	}
	dir, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "tablerock_*_linux_"+runtime.GOARCH+extension))
	if err != nil || len(found) != 1 {
		t.Fatalf("the files with %s are %q (%v), want one", extension, found, err)
	}
	return found[0]
}

// untar writes the files of r below dir. It keeps the owners if this process may.
func untar(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for files := tar.NewReader(r); ; {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(name, h.FileInfo().Mode().Perm())
		} else {
			err = errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), writeFile(name, func(f *os.File) error {
				_, err := io.Copy(f, files)
				return err
			}), os.Chmod(name, h.FileInfo().Mode().Perm()))
		}
		if err == nil && os.Geteuid() == 0 {
			err = os.Chown(name, h.Uid, h.Gid)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// output runs a command and returns its standard output.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v: %s%s", filepath.Base(name), args, err, text, &stderr)
	}
	return string(text)
}

// versionOf returns the version in the name of a package.
func versionOf(t *testing.T, name string) string {
	t.Helper()
	m := regexp.MustCompile(`^tablerock_([^_]+)_`).FindStringSubmatch(filepath.Base(name))
	if m == nil {
		t.Fatalf("there is no version in %s", name)
	}
	return m[1]
}

// TestArchive runs the program of the archive, which knows its version and commit.
func TestArchive(t *testing.T) {
	name := packageFile(t, ".tar.gz")
	dir := t.TempDir()
	untarGzip(t, name, dir)
	program := filepath.Join(dir, "tablerock")
	got := output(t, program, "version", "-o", "jsonl")
	if want := fmt.Sprintf(`"version":%q`, versionOf(t, name)); !strings.Contains(got, want) {
		t.Errorf("the program prints %s, want %s", got, want)
	}
	if commit := strings.TrimSpace(output(t, "git", "-c", "safe.directory=*", "rev-parse", "HEAD")); !strings.Contains(got, commit) {
		t.Errorf("the program prints %s, want the commit %s", got, commit)
	}
	for _, file := range []string{
		"LICENSE", "README.md", "CHANGELOG.md", "man/tablerock.1", "man/tablerock-serve.1", "completions/tablerock.bash", "completions/_tablerock",
	} {
		if info, err := os.Stat(filepath.Join(dir, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, name := range linked {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if m := link.FindSubmatch(text); m != nil {
			t.Errorf("%s links to %s, which is not in the archive", name, m[1])
		}
	}
	testStatic(t, program)
}

// testStatic checks that the program needs no library, has no symbols, and was made without
// cgo and without paths of this machine.
func testStatic(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %v", p.Type)
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil || f.Section(".zdebug_info") != nil {
		t.Error("the program has symbols")
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if settings["-trimpath"] != "true" || settings["CGO_ENABLED"] != "0" {
		t.Errorf("the settings of the program are %v", settings)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte(here+"/")) {
		t.Errorf("the program contains %s", here)
	}
	if len(text) > maxProgram {
		t.Errorf("the program has %d bytes, more than %d", len(text), maxProgram)
	}
}

// TestSums compares all packages with SHA256SUMS.
func TestSums(t *testing.T) {
	dir := filepath.Dir(packageFile(t, ".tar.gz"))
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	found, err := filepath.Glob(filepath.Join(dir, "tablerock_*"))
	if err != nil || len(found) != len(sums) {
		t.Errorf("there are %d packages and %d sums (%v)", len(found), len(sums), err)
	}
	for _, name := range found {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(b)); got != sums[filepath.Base(name)] {
			t.Errorf("the sum of %s is %s, in SHA256SUMS %s", filepath.Base(name), got, sums[filepath.Base(name)])
		}
	}
}

// TestRepeatable makes the packages of a program twice: they have the same bytes.
func TestRepeatable(t *testing.T) {
	dir := t.TempDir()
	untarGzip(t, packageFile(t, ".tar.gz"), filepath.Join(dir, "docs"))
	var runs [2]string
	for i := range runs {
		r := &release{root: "..", out: filepath.Join(dir, fmt.Sprint(i)), version: "1.2.3-rc.1+meta"}
		if err := r.describe(t.Context(), r.version); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(r.out, 0o755); err != nil {
			t.Fatal(err)
		}
		b := built{platform{"linux", runtime.GOARCH}, filepath.Join(dir, "docs", "tablerock"), filepath.Join(dir, "docs")}
		names, err := r.pack(b)
		if err == nil {
			err = r.writeSums(names)
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		runs[i] = string(text)
	}
	if runs[0] != runs[1] || strings.Count(runs[0], "\n") != 3 {
		t.Errorf("the sums of the first run are\n%sof the second\n%s", runs[0], runs[1])
	}
}

func untarGzip(t *testing.T, name, dir string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	untar(t, z, dir)
}

// TestVersions checks which versions are accepted.
func TestVersions(t *testing.T) {
	for version, want := range map[string]string{
		"1.2.3": "1.2.3", "v1.2.3": "1.2.3", "0.1.0-rc.1+5": "0.1.0-rc.1+5", "1.2": "", "one": "", "1.2.3/../x": "", "v1.2.3\n": "",
	} {
		r := &release{root: ".."}
		err := r.describe(t.Context(), version)
		if want == "" && err == nil || want != "" && (err != nil || r.version != want) {
			t.Errorf("%q becomes %q, %v, want %q", version, r.version, err, want)
		}
	}
}
