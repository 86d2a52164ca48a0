package full

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVolume mounts a volume of each kind, fills it, frees 1 MiB and unmounts it, also
// after its context has ended.
func TestVolume(t *testing.T) {
	for _, kind := range []string{ext4, tmpfs} {
		t.Run(kind, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			v := mountForTest(ctx, t, kind)
			if v.fresh < 6<<20 || v.fresh > 8<<20 {
				t.Errorf("%d bytes are available on a fresh volume of 8 MiB", v.fresh)
			}
			if err := v.fill(ctx); err != nil {
				t.Fatal(err)
			}
			full, err := available(v.dir)
			if err != nil || full != 0 {
				t.Errorf("%d bytes are left on the full volume, %v", full, err)
			}
			if err := v.free(1 << 20); err != nil {
				t.Fatal(err)
			}
			if free, err := available(v.dir); err != nil || free < 1<<20 || free > 1<<20+64<<10 {
				t.Errorf("%d bytes are left after 1 MiB was freed, %v", free, err)
			}
			cancel()
			if err := v.unmount(); err != nil {
				t.Fatal(err)
			}
			if mounted(t, v) {
				t.Errorf("%s is still mounted", v.dir)
			}
		})
	}
}

// TestUsage checks that the reserve does not count as used.
func TestUsage(t *testing.T) {
	v := mountForTest(t.Context(), t, tmpfs)
	if err := os.MkdirAll(filepath.Join(v.data(), account), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"000001.reserve", "000002.reserve", "000003.wal"} {
		if err := os.WriteFile(filepath.Join(v.data(), account, name), make([]byte, 1<<20), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if reserve, err := v.reserve(); err != nil || reserve != 2<<20 {
		t.Errorf("the reserve has %d bytes, %v; want 2 MiB", reserve, err)
	}
	if usage, err := v.usage(); err != nil || usage < 0.12 || usage > 0.13 {
		t.Errorf("%.3f of the volume is used, %v; want 1/8", usage, err)
	}
	if err := v.removeReserve(); err != nil {
		t.Fatal(err)
	}
	if reserve, err := v.reserve(); err != nil || reserve != 0 {
		t.Errorf("the reserve has %d bytes after its removal, %v", reserve, err)
	}
}

// mountForTest mounts a volume of 8 MiB until the end of the test. It skips the test where
// it cannot mount.
func mountForTest(ctx context.Context, t *testing.T, kind string) *volume {
	t.Helper()
	err := CheckSystem()
	var v *volume
	if err == nil {
		v, err = mountVolume(ctx, kind, 8<<20, t.TempDir())
	}
	if errors.Is(err, ErrCannotMount) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if mounted(t, v) {
			if err := v.unmount(); err != nil {
				t.Error(err)
			}
		}
	})
	return v
}

func mounted(t *testing.T, v *volume) bool {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(mounts), v.dir+" ")
}
