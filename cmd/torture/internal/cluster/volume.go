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
	"syscall"
	"time"
)

// nodeBytes is the size of a node's volume.
const nodeBytes = 1 << 30

// mountVolume mounts a file system in memory on dir if this process is root and the
// system allows it.
func mountVolume(ctx context.Context, dir string, size int64) (bool, error) {
	if os.Geteuid() != 0 {
		return false, nil
	}
	mount := exec.CommandContext(ctx, "mount", "-t", "tmpfs", "-o", fmt.Sprintf("size=%d,mode=755", size), "tmpfs", dir)
	err := mount.Run()
	if _, refused := errors.AsType[*exec.ExitError](err); refused || errors.Is(err, exec.ErrNotFound) {
		return false, ctx.Err()
	}
	return err == nil, err
}

// unmountVolume works after the end of the context of a run, too.
func unmountVolume(dir string) (err error) {
	var out []byte
	for range 50 {
		if out, err = exec.Command("umount", dir).CombinedOutput(); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond) // a killed process may still have files open
	}
	if exec.Command("umount", "--lazy", dir).Run() == nil {
		return nil
	}
	return fmt.Errorf("umount %s: %w: %s", dir, err, bytes.TrimSpace(out))
}

func ballast(dir string) string { return filepath.Join(dir, "ballast") }

// fillVolume writes a file until the volume has no space left.
func fillVolume(ctx context.Context, dir string) error {
	f, err := os.OpenFile(ballast(dir), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 1<<20); len(chunk) > 0 && ctx.Err() == nil; {
		if _, err := f.Write(chunk); errors.Is(err, syscall.ENOSPC) {
			chunk = chunk[:len(chunk)/2]
		} else if err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}
