package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// maxProgram is the most bytes that a program may have.
const maxProgram = 32 << 20

// built is the program of one platform, with the pages of its commands.
type built struct {
	platform
	path string // of the program
	docs string // directory with the folders man and completions, and the texts
}

// build makes all packages. A package that is there has all of its bytes.
func (r *release) build(ctx context.Context) error {
	work, err := os.MkdirTemp("", "tablerock-packaging-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	docs := filepath.Join(work, "docs")
	if err := r.document(ctx, filepath.Join(work, "native"), docs); err != nil {
		return err
	}
	if err := r.writeTexts(docs); err != nil {
		return err
	}
	// Most of the time is that of the linker and of gzip, each on one processor.
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	names := make([][]string, len(r.platforms))
	for i, p := range r.platforms {
		group.Go(func() (err error) {
			b := built{platform: p, path: filepath.Join(work, p.os+"-"+p.arch, p.program()), docs: docs}
			if err := r.compile(ctx, p, b.path); err != nil {
				return err
			}
			if names[i], err = r.pack(b); err != nil {
				return fmt.Errorf("%s: %w", p, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.writeSums(slices.Concat(names...))
}

// compile makes a static program that knows its version and does not contain a path of this
// machine.
func (r *release) compile(ctx context.Context, p platform, path string) error {
	stamp := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s", r.version, r.commit)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", path, "./cmd/tablerock")
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch, "GOFLAGS=", "GOWORK=off")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("compile for %s: %w", p, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Size() > maxProgram {
		return fmt.Errorf("the program for %s has %d bytes, more than %d", p, info.Size(), maxProgram)
	}
	return nil
}

// document writes the manual pages and the completions, by a program for this system.
func (r *release) document(ctx context.Context, dir, docs string) error {
	p := platform{runtime.GOOS, runtime.GOARCH}
	program := filepath.Join(dir, p.program())
	if err := r.compile(ctx, p, program); err != nil {
		return err
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.Stderr = os.Stderr
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
		return cmd
	}
	if err := command("man", filepath.Join(docs, "man")).Run(); err != nil {
		return fmt.Errorf("manual pages: %w", err)
	}
	completions := filepath.Join(docs, "completions")
	if err := os.MkdirAll(completions, 0o755); err != nil {
		return err
	}
	for shell, name := range map[string]string{
		"bash": "tablerock.bash", "zsh": "_tablerock", "fish": "tablerock.fish", "powershell": "tablerock.ps1",
	} {
		text, err := command("completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		if err := os.WriteFile(filepath.Join(completions, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pack makes the packages of one platform and returns their names.
func (r *release) pack(b built) (names []string, err error) {
	base := fmt.Sprintf("tablerock_%s_%s_%s", r.version, b.os, b.arch)
	packages := []struct {
		name  string
		write func(built, *os.File) error
	}{{base + ".tar.gz", r.writeTar}}
	switch b.os {
	case "windows":
		packages[0].name, packages[0].write = base+".zip", r.writeZip
	case "linux":
		packages = append(packages, struct {
			name  string
			write func(built, *os.File) error
		}{base + ".oci.tar", r.writeImage}, struct {
			name  string
			write func(built, *os.File) error
		}{base + ".deb", r.writeDeb})
	}
	for _, p := range packages {
		if err := writeFile(filepath.Join(r.out, p.name), func(f *os.File) error { return p.write(b, f) }); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		info, err := os.Stat(filepath.Join(r.out, p.name))
		if err != nil {
			return nil, err
		}
		fmt.Printf("%s %.1f MB\n", p.name, float64(info.Size())/1e6)
		names = append(names, p.name)
	}
	return names, nil
}

// writeFile makes a file that has its name only when it is complete.
func writeFile(name string, write func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".packaging-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// writeSums writes SHA256SUMS, which the program sha256sum checks.
func (r *release) writeSums(names []string) error {
	var text strings.Builder
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(b), name)
	}
	return writeFile(filepath.Join(r.out, "SHA256SUMS"), func(f *os.File) error {
		_, err := f.WriteString(text.String())
		return err
	})
}
