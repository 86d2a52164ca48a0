package plant

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// SourceBug is a bug in the source of the engine, which a unit test must find. No file
// system or store can imitate it.
type SourceBug struct {
	Name, What string
	Diff       string // for git apply
	Package    string // has the test, relative to the module
	Test       string
}

//go:embed testdata/*.diff
var diffs embed.FS

const (
	module    = "github.com/tablerock-db/tablerock"
	commitlog = "./engine/internal/commitlog"
)

// SourceBugs returns all bugs in the source.
func SourceBugs() []SourceBug {
	bugs := []SourceBug{
		{Name: "flush-high-water", What: "a flush does not list the greatest Timestamp", Package: "./engine", Test: "TestFlushKeepsTimestampsRising"},
		{Name: "batch-high-water", What: "the greatest Timestamp of a batch is its first one", Package: commitlog, Test: "TestTimestampsOfBatches"},
		{Name: "group-first-segment", What: "only the last segment of a group is synced", Package: commitlog, Test: "TestGroupOverTwoSegments"},
		{Name: "manifest-unsynced", What: "the manifest states that unsynced records are durable", Package: "./engine", Test: "TestManifestProvesOnlySyncedRecords"},
		{Name: "header-unsynced", What: "a header states that an unsynced segment is complete", Package: commitlog, Test: "TestHeaderStatesWhatIsSynced"},
		{Name: "flush-unreserved", What: "a flush of unsynced segments reserves no sequence numbers", Package: "./engine", Test: "TestNoSyncInterruptedFlush"},
		{Name: "lost-segments", What: "segments that a crash cut off from the log stay", Package: "./engine", Test: "TestNoSyncLosesSegments"},
		{Name: "bounds-sum", What: "the bounds of an sstable are used without a check of their sum", Package: "./sstable", Test: "TestDamagedBounds"},
	}
	for i := range bugs {
		diff, err := diffs.ReadFile("testdata/" + bugs[i].Name + ".diff")
		if err != nil {
			panic(err) // embedded
		}
		bugs[i].Diff = string(diff)
	}
	return bugs
}

// SourceCatch is the result of SourceBug.Hunt: the test that failed.
type SourceCatch struct {
	Test    string
	Seconds float64 // that the test took, without its compilation
	By      string  // the message of the test
}

// SourceDir returns the directory of the engine's source: the module of the working
// directory, or what it requires.
func SourceDir(ctx context.Context) (string, error) {
	out, err := command(ctx, "", "go", "list", "-m", "-f", "{{.Dir}}", module)
	if err != nil {
		return "", fmt.Errorf("find the source of the engine, which the working directory must be part of: %w", err)
	}
	return strings.TrimSpace(out), nil
}

// Hunt runs the test of b in the source at dir, with the bug. It does not change dir: an
// overlay replaces the files that the diff changes. It fails if the diff does not apply,
// the package does not compile, or the test does not fail.
func (b SourceBug) Hunt(ctx context.Context, dir string) (SourceCatch, error) {
	work, err := os.MkdirTemp("", "tablerock-planted-")
	if err != nil {
		return SourceCatch{}, fmt.Errorf("plant %s: %w", b.Name, err)
	}
	defer os.RemoveAll(work)
	overlay, err := b.plant(ctx, dir, work)
	if err != nil {
		return SourceCatch{}, fmt.Errorf("plant %s: %w", b.Name, err)
	}
	out, failure := command(ctx, dir, "go", "test", "-json", "-short", "-vet=off", "-count=1", "-timeout=2m",
		"-overlay="+overlay, "-run=^"+b.Test+"$", b.Package)
	if err := ctx.Err(); err != nil {
		return SourceCatch{}, err
	}
	c, ran := readEvents(out)
	switch {
	case c.Test != "":
		return c, nil
	case failure != nil:
		return c, fmt.Errorf("test %s: %w\n%s", b.Name, failure, c.By)
	case !ran:
		return c, fmt.Errorf("test %s: %s has no %s", b.Name, b.Package, b.Test)
	}
	return c, fmt.Errorf("%w: %s: %s of %s passes", ErrMissed, b.Name, b.Test, b.Package)
}

// plant writes the changed files and an overlay to work and returns the overlay's name.
func (b SourceBug) plant(ctx context.Context, dir, work string) (overlay string, err error) {
	diff := filepath.Join(work, "diff")
	if err := os.WriteFile(diff, []byte(b.Diff), 0o600); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for line := range strings.Lines(b.Diff) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if !ok {
			continue
		}
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		changed := filepath.Join(work, "tree", name)
		if err := os.MkdirAll(filepath.Dir(changed), 0o700); err != nil {
			return "", err
		}
		if err := os.WriteFile(changed, source, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(dir, name)] = changed
	}
	if _, err := command(ctx, filepath.Join(work, "tree"), "git", "apply", diff); err != nil {
		return "", fmt.Errorf("the source has changed, write the diff again: %w", err)
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(work, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// readEvents reads the output of go test -json: the first test that failed, without its
// subtests, and whether any test ran. Without a failed test By is all other output.
func readEvents(out string) (c SourceCatch, ran bool) {
	type event struct {
		Action, Test, Output string
		Elapsed              float64
	}
	output := map[string]string{}
	for line := range strings.Lines(out) {
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		top, _, _ := strings.Cut(e.Test, "/")
		ran = ran || top != ""
		if text := strings.TrimSpace(e.Output); text != "" && !strings.HasPrefix(text, "===") && !strings.HasPrefix(text, "---") {
			output[top] += text + "\n"
		}
		if e.Action == "fail" && c.Test == "" && e.Test == top {
			c.Test, c.Seconds = top, e.Elapsed
		}
	}
	c.By = output[c.Test]
	if c.Test != "" {
		c.By, _, _ = strings.Cut(c.By, "\n")
	}
	return c, ran
}

// command runs a program in dir and returns its output. The error has the end of what the
// program wrote to stderr.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	// git apply would skip the files if it found a repository above its directory.
	cmd.Env = append(cmd.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go test ends its children
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if text := strings.TrimSpace(stderr.String()); err != nil && text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	var gone *exec.Error
	if errors.As(err, &gone) {
		err = fmt.Errorf("this needs %s: %w", name, err)
	}
	return stdout.String(), err
}
