// Package backuptest has a backup.Target for tests, and the tests that each Target passes.
package backuptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/tablerock-db/tablerock/backup"
)

// ErrInjected is the error of a call that fails by seed.
var ErrInjected = errors.New("injected failure of the backup target")

// Target is a backup.Target in memory. By a seed, its calls fail: before the effect, after
// the effect as if the answer were lost, and in the middle of a Get. Its methods may be
// called concurrently, but then the failures depend on their order.
type Target struct {
	mu sync.Mutex
	// +checklocks:mu
	random *rand.Rand
	// +checklocks:mu
	failures float64
	// +checklocks:mu
	objects map[string][]byte // the bytes are immutable
}

// NewTarget returns an empty Target. Each call fails with the given probability.
func NewTarget(seed uint64, failures float64) *Target {
	return &Target{random: rand.New(rand.NewPCG(seed, 1)), failures: failures, objects: make(map[string][]byte)}
}

// SetFailures changes the probability that a call fails.
func (t *Target) SetFailures(probability float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = probability
}

// Patch replaces the bytes of an object, or without bytes removes it, as damage does.
func (t *Target) Patch(name string, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b == nil {
		delete(t.objects, name)
		return
	}
	t.objects[name] = slices.Clone(b)
}

// failLocked decides whether a call fails, and whether its effect happens all the same.
// +checklocks:t.mu
func (t *Target) failLocked() (err error, applied bool) {
	if t.random.Float64() >= t.failures {
		return nil, true
	}
	return ErrInjected, t.random.IntN(2) == 0
}

// Put implements backup.Target.
func (t *Target) Put(ctx context.Context, name string, r io.Reader) error {
	return t.put(ctx, name, r, true)
}

// PutIfAbsent implements backup.Target.
func (t *Target) PutIfAbsent(ctx context.Context, name string, r io.Reader) error {
	return t.put(ctx, name, r, false)
}

func (t *Target) put(ctx context.Context, name string, r io.Reader, replace bool) error {
	if err := backup.CheckName(name); err != nil {
		return err
	}
	b, err := io.ReadAll(r)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err, applied := t.failLocked()
	if !applied {
		return err
	}
	if _, exists := t.objects[name]; exists && !replace {
		return &fs.PathError{Op: "put", Path: name, Err: fs.ErrExist}
	}
	t.objects[name] = b
	return err
}

// Get implements backup.Target.
func (t *Target) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := errors.Join(backup.CheckName(name), ctx.Err()); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err, middle := t.failLocked()
	if err != nil && !middle {
		return nil, err
	}
	b, ok := t.objects[name]
	if !ok {
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
	}
	r := &reader{ctx: ctx, r: bytes.NewReader(b), err: io.EOF}
	if err != nil {
		r.r, r.err = bytes.NewReader(b[:t.random.IntN(len(b)+1)]), err
	}
	return r, nil
}

// reader reads bytes and ends with an error.
type reader struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	if err == io.EOF {
		err = r.err
	}
	return n, err
}

func (r *reader) Close() error { return nil }

// List implements backup.Target.
func (t *Target) List(ctx context.Context, prefix string) ([]backup.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err, _ := t.failLocked(); err != nil {
		return nil, err
	}
	var objects []backup.Object
	for _, name := range slices.Sorted(maps.Keys(t.objects)) {
		if strings.HasPrefix(name, prefix) {
			objects = append(objects, backup.Object{Name: name, Size: int64(len(t.objects[name]))})
		}
	}
	return objects, nil
}

// Delete implements backup.Target.
func (t *Target) Delete(ctx context.Context, name string) error {
	if err := errors.Join(backup.CheckName(name), ctx.Err()); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	err, applied := t.failLocked()
	if applied {
		delete(t.objects, name)
	}
	return err
}
