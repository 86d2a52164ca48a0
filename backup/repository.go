package backup

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
)

// ErrNotBackup means that a directory is not a backup directory: it has no marker.
var ErrNotBackup = errors.New("not a backup directory")

// ErrNoBackup means that a backup directory has no backup of that account, id or time.
var ErrNoBackup = errors.New("no such backup")

// Repository reads and writes the backups of a backup directory. Its methods may be called
// concurrently; Create and Prune run one at a time.
type Repository struct {
	target Target
	id     [16]byte
	damage error      // of the marker: its id is that of the manifests
	writes sync.Mutex // held by Create and Prune, so that Prune keeps the files of a backup under way
}

// Info describes a backup.
type Info struct {
	Account string
	ID      string    // its time, as restore accepts it
	Time    time.Time // when it was made: it has no write that began later
	// LastSequence is the sequence number of its last write, and LastTimestamp is not
	// below the Timestamp of any of its writes.
	LastSequence  uint64
	LastTimestamp time.Time
	Epoch         uint64
	Database      [16]byte
	Tables        []string // when it began
	Files         int
	Bytes         int64 // of its files
	// CopiedBytes and LinkedBytes are what Create stored, by a copy and by a hard link. The
	// other files were there. Only Create sets them.
	CopiedBytes, LinkedBytes int64
}

func (m *manifest) info() Info {
	return Info{
		Account: m.Account, ID: backupID(m.Time), Time: m.Time, LastSequence: m.LastSequence, LastTimestamp: m.LastTimestamp,
		Epoch: m.Epoch, Database: m.databaseID(), Tables: m.Tables, Files: len(m.Files), Bytes: m.bytes(),
	}
}

// Open opens the backup directory in target. The error matches ErrNotBackup if it is none. If the
// marker is damaged, but all manifests have the id of one directory, it can be read.
func Open(ctx context.Context, target Target) (*Repository, error) {
	r := &Repository{target: target}
	var err error
	if r.id, err = readMarker(ctx, target); errors.Is(err, corrupt.ErrCorrupt) {
		r.damage = err
		err = r.takeID(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// readMarker returns the id of the backup directory in target.
func readMarker(ctx context.Context, target Target) (id [16]byte, err error) {
	b, err := get(ctx, target, markerName, markerLen)
	if errors.Is(err, fs.ErrNotExist) {
		return id, fmt.Errorf("%w: it has no %s", ErrNotBackup, markerName)
	}
	if err != nil {
		return id, err
	}
	return decodeMarker(b)
}

// takeID takes the id from the manifests. The error is that of the marker, unless they have one.
func (r *Repository) takeID(ctx context.Context) error {
	names, err := r.names(ctx, "")
	if err != nil {
		return errors.Join(r.damage, err)
	}
	ids := make(map[string]bool)
	for _, name := range names {
		b, err := get(ctx, r.target, name, maxManifestBytes)
		if err != nil {
			return errors.Join(r.damage, err)
		}
		if m, err := decodeManifest(name, b); err == nil {
			ids[m.Directory] = true
		}
	}
	if len(ids) != 1 {
		return r.damage
	}
	for id := range ids {
		_, err = hex.Decode(r.id[:], []byte(id)) // decodeManifest has checked its length
	}
	return err
}

// Init opens the backup directory in target to write to it, and makes one if target has no objects.
// If it has others, the error matches ErrNotBackup. The marker must not be damaged.
func Init(ctx context.Context, target Target) (*Repository, error) {
	r, err := Open(ctx, target)
	if err == nil {
		err = r.damage
	}
	if !errors.Is(err, ErrNotBackup) {
		return r, err
	}
	others, listErr := target.List(ctx, "")
	if listErr != nil {
		return nil, listErr
	}
	if len(others) > 0 {
		return nil, fmt.Errorf("%w, and it holds %s", err, others[0].Name)
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	err = target.PutIfAbsent(ctx, markerName, bytes.NewReader(appendMarker(nil, id)))
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the backup directory: %w", err)
	}
	return Open(ctx, target) // another process can have made it
}

// Check returns an error that matches ErrNotBackup if the target is not the backup directory any
// more that was opened: its volume can have been unmounted, or another one mounted in its place.
// A damaged marker is an error too. Create and Prune call it.
func (r *Repository) Check(ctx context.Context) error {
	id, err := readMarker(ctx, r.target)
	if err == nil && id != r.id {
		err = fmt.Errorf("%w of this process: it has the id %x, and the one that was opened here has %x", ErrNotBackup, id, r.id)
	}
	return err
}

// get returns the bytes of an object, at most limit and one more.
func get(ctx context.Context, target Target, name string, limit int64) ([]byte, error) {
	r, err := target.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return b, nil
}

// names returns the names of the manifests of an account, or with "" of all accounts, oldest
// first.
func (r *Repository) names(ctx context.Context, account string) ([]string, error) {
	prefix := ""
	if account != "" {
		prefix = account + "/" + backupsDir + "/"
	}
	objects, err := r.target.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	var names []string
	for _, o := range objects {
		if _, id, ok := splitManifestName(o.Name); ok && id != "" {
			names = append(names, o.Name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int {
		_, x, _ := splitManifestName(a)
		_, y, _ := splitManifestName(b)
		return cmp.Compare(x, y)
	})
	return names, nil
}

// splitManifestName returns the account and the id of the name of a manifest.
func splitManifestName(name string) (account, id string, ok bool) {
	account, id, _ = strings.Cut(name, "/"+backupsDir+"/")
	_, err := parseBackupID(id)
	return account, id, err == nil
}

// manifest reads the manifest of that name.
func (r *Repository) manifest(ctx context.Context, name string) (*manifest, error) {
	b, err := get(ctx, r.target, name, maxManifestBytes)
	if err != nil {
		return nil, err
	}
	m, err := decodeManifest(name, b)
	if err != nil {
		return nil, err
	}
	if m.Directory != hex.EncodeToString(r.id[:]) {
		return nil, fmt.Errorf("%w: %s belongs to the backup directory with the id %s", ErrNotBackup, name, m.Directory)
	}
	return m, nil
}

// List returns the backups of an account, or with "" of all accounts, oldest first. The error
// joins one for each manifest that is damaged, and the others are returned all the same.
func (r *Repository) List(ctx context.Context, account string) ([]Info, error) {
	list, unread, err := r.infos(ctx, account)
	return list, errors.Join(append(unread, err)...)
}

// infos returns the backups of an account, and an error for each manifest that it could not read.
func (r *Repository) infos(ctx context.Context, account string) (list []Info, unread []error, err error) {
	names, err := r.names(ctx, account)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		m, err := r.manifest(ctx, name)
		if err == nil {
			list = append(list, m.info())
		} else if !errors.Is(err, fs.ErrNotExist) { // it was not removed since names
			unread = append(unread, err)
		}
	}
	return list, unread, nil
}

// readable returns the backups of an account but those whose manifests are damaged or the like, which
// must not prevent the use of the others. It returns any other error of a manifest: this may be the newest backup.
func (r *Repository) readable(ctx context.Context, account string) ([]Info, error) {
	list, unread, err := r.infos(ctx, account)
	for _, e := range unread {
		if err == nil && !unreadable(e) {
			err = e
		}
	}
	return list, err
}

// unreadable reports whether an error of Repository.manifest stays: the manifest is damaged, of a newer build or of another backup
// directory.
func unreadable(err error) bool {
	return errors.Is(err, corrupt.ErrCorrupt) || errors.Is(err, feature.ErrNewerFormat) || errors.Is(err, ErrNotBackup)
}

// maxEpoch returns an epoch for an account that is at least the greatest one of the backup directory.
func (r *Repository) maxEpoch(ctx context.Context, account string) (uint64, error) {
	list, unread, err := r.infos(ctx, account)
	if err != nil {
		return 0, err
	}
	var greatest uint64
	for _, i := range list {
		greatest = max(greatest, i.Epoch)
	}
	// Each epoch is one more than the greatest before it, so that of a backup which could not be read can be as much greater.
	greatest += min(uint64(len(unread)), math.MaxUint64-greatest)
	prefix := account + "/" + archiveDir + "/"
	objects, err := r.target.List(ctx, prefix)
	for _, o := range objects {
		digits, _, _ := strings.Cut(strings.TrimPrefix(o.Name, prefix), "/")
		if epoch, err := strconv.ParseUint(digits, 16, 64); err == nil {
			greatest = max(greatest, epoch)
		}
	}
	return greatest, err
}
