package full

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrCannotMount means that this process cannot mount a volume on this machine.
var ErrCannotMount = errors.New("cannot mount a volume here")

// volume is a mounted file system of a limited size.
type volume struct {
	dir   string // the mount point
	fresh int64  // bytes that were available before anything was written
}

// mountVolume makes a file system with the given size below dir, which must exist, and
// mounts it. The error is ErrCannotMount if any step fails.
func mountVolume(ctx context.Context, kind string, bytes int64, dir string) (v *volume, err error) {
	v = &volume{dir: filepath.Join(dir, "mnt")}
	if err := os.Mkdir(v.dir, 0o700); err != nil {
		return nil, err
	}
	if kind == tmpfs {
		err = command(ctx, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", bytes), "tmpfs", v.dir)
	} else {
		err = mountImage(ctx, bytes, filepath.Join(dir, "image"), v.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCannotMount, err)
	}
	if v.fresh, err = available(v.dir); err != nil {
		return nil, errors.Join(err, v.unmount())
	}
	return v, nil
}

func mountImage(ctx context.Context, bytes int64, image, dir string) error {
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(image, bytes); err != nil {
		return err
	}
	if err := command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", image); err != nil {
		return err
	}
	return command(ctx, "mount", "-o", "loop", image, dir)
}

// unmount unmounts the volume. It works after the end of the context of the run, too.
func (v *volume) unmount() (err error) {
	for range 50 {
		if err = command(context.Background(), "umount", v.dir); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond) // a killed process may still have files open
	}
	return errors.Join(err, command(context.Background(), "umount", "--lazy", v.dir))
}

// command runs a program of the system.
func command(ctx context.Context, name string, args ...string) error {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
	}
	return nil
}

func (v *volume) data() string    { return filepath.Join(v.dir, "data") }
func (v *volume) ballast() string { return filepath.Join(v.dir, "ballast") }

// usage returns the share of the fresh volume that is used, not counting the reserve.
func (v *volume) usage() (float64, error) {
	free, err := available(v.dir)
	if err != nil {
		return 0, err
	}
	reserve, err := v.reserve()
	return float64(v.fresh-free-reserve) / float64(v.fresh), err
}

// reserve returns the allocated bytes of the reserve.
func (v *volume) reserve() (bytes int64, err error) {
	files, err := v.reserveFiles()
	for _, name := range files {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the engine has released it
		}
		if err != nil {
			return 0, err
		}
		bytes += allocated(info)
	}
	return bytes, err
}

func (v *volume) reserveFiles() ([]string, error) {
	return filepath.Glob(filepath.Join(v.data(), "*", "*.reserve"))
}

// removeReserve removes the reserve of a database that no process has open.
func (v *volume) removeReserve() error {
	files, err := v.reserveFiles()
	for _, name := range files {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// fill appends to a file of its own until the volume has 0 bytes left.
func (v *volume) fill(ctx context.Context) error {
	f, err := os.OpenFile(v.ballast(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	chunk := make([]byte, 1<<20)
	for len(chunk) > 0 && ctx.Err() == nil {
		if _, err := f.Write(chunk); err != nil {
			if !isFull(err) {
				return errors.Join(err, f.Close())
			}
			chunk = chunk[:len(chunk)/2]
		}
	}
	err = f.Sync()
	if isFull(err) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// free shortens the file of fill by a number of bytes.
func (v *volume) free(bytes int64) error {
	info, err := os.Stat(v.ballast())
	if err != nil {
		return err
	}
	return os.Truncate(v.ballast(), max(0, info.Size()-bytes))
}
