// Command packaging makes the packages of a release. The script build starts it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// allPlatforms are the systems of a release.
const allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// release says which packages to make.
type release struct {
	root      string // of the checkout
	out       string // directory of the packages
	version   string // by semantic versioning, without v
	commit    string
	time      time.Time // of the commit; all files have it, so that the same commit gives the same packages
	platforms []platform
}

// platform is a system and a processor, in the words of Go.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// program returns the name of the program.
func (p platform) program() string {
	if p.os == "windows" {
		return "tablerock.exe"
	}
	return "tablerock"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("packaging", flag.ExitOnError)
	root := flags.String("root", "..", "directory of the checkout")
	in := flags.String("in", ".", "directory that -out is relative to")
	out := flags.String("out", "dist", "directory of the packages")
	version := flags.String("version", "", "version, like 1.2.0 (default: from the tag of the commit)")
	platforms := flags.String("platforms", allPlatforms, "systems, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag; -platforms selects systems", flags.Arg(0))
	}
	r := &release{root: *root, out: *out}
	if !filepath.IsAbs(r.out) {
		r.out = filepath.Join(*in, r.out)
	}
	for name := range strings.SplitSeq(*platforms, ",") {
		system, arch, _ := strings.Cut(name, "/")
		if !slices.Contains(strings.Split(allPlatforms, ","), name) {
			return fmt.Errorf("-platforms: there is no %q; there are %s", name, allPlatforms)
		}
		r.platforms = append(r.platforms, platform{system, arch})
	}
	if err := r.describe(ctx, *version); err != nil {
		return err
	}
	return r.build(ctx)
}

// semantic matches a version by semantic versioning 2.0.0.
var semantic = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)

// describe sets version, commit and time from git. Without a tag, the version is 0.0.0 with
// the commit as its prerelease.
func (r *release) describe(ctx context.Context, version string) error {
	head, err := r.git(ctx, "log", "-1", "--format=%H %ct")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(head, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	r.commit, r.time = commit, time.Unix(unix, 0).UTC()
	if version == "" {
		tag, err := r.git(ctx, "tag", "--points-at", "HEAD", "--list", "v*")
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(tag, "\n")
		version = first
	}
	if version == "" {
		version = "0.0.0-dev." + commit[:12]
	}
	r.version = strings.TrimPrefix(version, "v")
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("-version %q is not a version like 1.2.0", version)
	}
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	// Another user may own the checkout.
	args = append([]string{"-C", r.root, "-c", "safe.directory=*"}, args...)
	text, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[4], err)
	}
	return strings.TrimSpace(string(text)), nil
}
