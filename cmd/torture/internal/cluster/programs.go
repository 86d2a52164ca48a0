//go:build linux

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// ErrNoPrograms means that this machine lacks the programs of a cluster and cannot get them.
var ErrNoPrograms = errors.New("no programs of a cluster here")

// packages are the Debian packages that a cluster needs.
var packages = []string{"etcd-server", "patroni", "postgresql-15", "libfaketime"}

// Programs are the programs of a cluster.
type Programs struct {
	root     string // folder of unpacked packages
	postgres string // folder of PostgreSQL's programs
	etcd     string
	patroni  string
	faketime string // libfaketime.so.1
}

// python is Debian's interpreter, for which the modules of the packages are built.
const python = "/usr/bin/python3"

// Unpack downloads the packages and unpacks them below dir, without installing them, so
// that no cluster of the system is made. It skips the download if dir has them. Programs
// that the system has in the same version are not downloaded, but used.
func Unpack(ctx context.Context, dir string) (*Programs, error) {
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err != nil {
		if err := download(ctx, dir); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPrograms, err)
		}
		if err := os.WriteFile(complete, nil, 0o644); err != nil {
			return nil, err
		}
	}
	return find(dir)
}

func download(ctx context.Context, dir string) error {
	debs := filepath.Join(dir, "debs")
	for _, d := range []string{dir, debs} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	names, err := missing(ctx)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return nil
	}
	get := exec.CommandContext(ctx, "apt-get", append([]string{"download", "-qq"}, names...)...)
	get.Dir = debs
	if out, err := get.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get download: %w: %s", err, bytes.TrimSpace(out))
	}
	files, err := filepath.Glob(filepath.Join(debs, "*.deb"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if out, err := exec.CommandContext(ctx, "dpkg-deb", "-x", f, dir).CombinedOutput(); err != nil {
			return fmt.Errorf("dpkg-deb -x %s: %w: %s", filepath.Base(f), err, bytes.TrimSpace(out))
		}
	}
	return os.RemoveAll(debs)
}

// missing returns the packages that an installation of the packages would add or upgrade.
// The C library of the system stays in use.
func missing(ctx context.Context) (names []string, err error) {
	args := append([]string{"install", "--simulate", "--no-install-recommends"}, packages...)
	out, err := exec.CommandContext(ctx, "apt-get", args...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("apt-get install --simulate (run apt-get update if it does not know the packages): %w: %s", err, bytes.TrimSpace(out))
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		if len(f) > 1 && f[0] == "Inst" && !strings.HasPrefix(f[1], "libc") && !strings.HasSuffix(f[1], "-dev") {
			names = append(names, f[1])
		}
	}
	return names, nil
}

// find returns the programs below dir or of the system.
func find(dir string) (*Programs, error) {
	p := &Programs{root: dir}
	for _, f := range []struct {
		to   *string
		path string
	}{
		{&p.postgres, "/usr/lib/postgresql/15/bin/postgres"},
		{&p.etcd, "/usr/bin/etcd"},
		{&p.patroni, "/usr/bin/patroni"},
		{&p.faketime, "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"},
	} {
		for _, root := range []string{dir, "/"} {
			if *f.to == "" {
				// The library is in a folder with the name of the processor.
				found, _ := filepath.Glob(filepath.Join(root, strings.Replace(f.path, "x86_64", "*", 1)))
				if len(found) > 0 {
					*f.to = found[0]
				}
			}
		}
		if *f.to == "" {
			return nil, fmt.Errorf("%w: %s is missing", ErrNoPrograms, f.path)
		}
	}
	p.postgres = filepath.Dir(p.postgres)
	if _, err := os.Stat(python); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPrograms, err)
	}
	return p, nil
}

// environment returns the environment of the programs. It has nothing of the caller's
// environment, so that no setting of it changes a cluster.
func (p *Programs) environment(extra ...string) []string {
	libs, _ := filepath.Glob(filepath.Join(p.root, "usr/lib/*-linux-gnu"))
	return append([]string{
		"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH=" + filepath.Join(p.root, "usr/lib/python3/dist-packages"),
		"LD_LIBRARY_PATH=" + strings.Join(libs, ":"),
	}, extra...)
}

// Versions returns a line with the versions of the programs.
func (p *Programs) Versions(ctx context.Context) (string, error) {
	var versions []string
	for _, args := range [][]string{{filepath.Join(p.postgres, "postgres"), "--version"}, {python, p.patroni, "--version"}, {p.etcd, "--version"}} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Env = p.environment()
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w", strings.Join(args, " "), err)
		}
		line, _, _ := strings.Cut(string(out), "\n")
		versions = append(versions, line)
	}
	return strings.Join(versions, ", "), nil
}
