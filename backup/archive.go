package backup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tablerock-db/tablerock/backup/internal/rollforward"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/internal/archive"
	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
	dbmanifest "github.com/tablerock-db/tablerock/internal/manifest"
	"github.com/tablerock-db/tablerock/vfs"
)

// ErrOtherHistory is wrapped by the error for a chunk of a database that differs from the
// archived chunk of the same name: two copies of a database were archived in one place.
var ErrOtherHistory = errors.New("the archive has the history of another copy of this database")

// ErrOutOfRange is wrapped by the error of Restore for a moment that backups and archive do
// not reach, because it is too early or too late or a chunk is missing.
var ErrOutOfRange = rollforward.ErrOutOfRange

// NewArchive returns the archive of an account in a Target, for engine.Options.Archive. Call Init
// before the database is opened: it refuses a Target that has chunks of an archive and no marker.
// The calls of the archive fail if the name of the account is not an element of a name (CheckName).
func NewArchive(t Target, account string) engine.Archive { return &targetArchive{t, account} }

type targetArchive struct {
	t       Target
	account string
}

// Put implements engine.Archive. A chunk is archived again if a crash, or an error after
// the effect, hid that it was archived.
func (a *targetArchive) Put(ctx context.Context, name string, chunk io.Reader) error {
	if err := checkAccount(a.account); err != nil {
		return err
	}
	name = path.Join(a.account, archiveDir, name)
	found, err := a.t.List(ctx, name)
	if err != nil {
		return err
	}
	if len(found) == 0 || found[0].Name != name {
		return a.t.PutIfAbsent(ctx, name, chunk)
	}
	object, err := a.t.Get(ctx, name)
	if err != nil {
		return err
	}
	same, err := sameBytes(object, chunk)
	if err == nil && !same {
		if _, err = io.Copy(io.Discard, chunk); err == nil { // a damaged chunk says so at its end
			err = fmt.Errorf("%w: %s; archive this one in another directory", ErrOtherHistory, name)
		}
	}
	return errors.Join(err, object.Close())
}

// sameBytes reports whether two readers have the same bytes to their ends.
func sameBytes(a, b io.Reader) (bool, error) {
	p, q := make([]byte, copyBytes), make([]byte, copyBytes)
	for {
		n, errA := io.ReadFull(a, p)
		m, errB := io.ReadFull(b, q)
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if !bytes.Equal(p[:n], q[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return (errA != nil) == (errB != nil), nil
		}
	}
}

// archived returns the prefix of the names of an account's archive, and the objects there.
func (r *Repository) archived(ctx context.Context, account string) (prefix string, objects []Object, err error) {
	prefix = path.Join(account, archiveDir) + "/"
	if objects, err = r.target.List(ctx, prefix); err != nil {
		return "", nil, fmt.Errorf("list the archive: %w", err)
	}
	return prefix, objects, nil
}

// first returns the first moment that can be restored by a backup. That of an empty database
// shows nothing about the time before it.
func (m *manifest) first() time.Time {
	if m.LastSequence == 0 {
		return m.Time
	}
	return m.LastTimestamp
}

// histories are the databases that accounts have had, and their epochs. One that was replaced
// and comes back begins again.
type histories struct {
	began  map[string]*manifest // by the name of each backup, the oldest one of its history
	oldest map[string]*manifest // of each account
	names  map[string]bool      // the results of manifest.history
	unread map[string]error     // by the name of each backup, why its manifest cannot be read, as because of damage
}

// histories reads the manifests of these names, which are sorted.
func (r *Repository) histories(ctx context.Context, names []string) (*histories, error) {
	h := &histories{
		began: make(map[string]*manifest), oldest: make(map[string]*manifest), names: make(map[string]bool), unread: make(map[string]error),
	}
	last := make(map[string]*manifest) // by account, the beginning of the history so far
	for _, name := range names {
		m, err := r.manifest(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since names
			continue
		case unreadable(err):
			h.unread[name] = err
			continue
		case err != nil:
			return nil, err
		}
		if before := last[m.Account]; before == nil || before.history() != m.history() {
			last[m.Account] = m
		}
		h.began[name], h.oldest[m.Account], h.names[m.history()] = last[m.Account], cmp.Or(h.oldest[m.Account], m), true
	}
	return h, nil
}

// checkHidden returns an error if the account may have had another database at a moment than the
// manifests say: that of its last backup before, or else of its first one, cannot be read, and the
// archive has the history of a database of which none can be.
func (r *Repository) checkHidden(ctx context.Context, h *histories, names []string, account string, until time.Time) error {
	var unread error
	for _, name := range slices.Backward(names) {
		of, id, _ := splitManifestName(name)
		if of != account {
			continue
		}
		unread = h.unread[name]
		if id <= backupID(until) {
			break
		}
	}
	if unread == nil {
		return nil
	}
	prefix, objects, err := r.archived(ctx, account)
	for _, object := range objects {
		if !h.names[path.Join(account, path.Dir(strings.TrimPrefix(object.Name, prefix)))] {
			return unread
		}
	}
	return err
}

func (m *manifest) history() string {
	return path.Join(m.Account, archive.Prefix(m.Epoch, m.databaseID()))
}

// from returns the first moment that can be restored by m. Before the first backup of its history
// the account had another database or epoch, even if the writes of m are older: it was restored,
// or it comes from elsewhere.
func (h *histories) from(m *manifest) time.Time {
	began := cmp.Or(h.began[backupName(m.Account, backupID(m.Time))], m)
	if follows := m.Epoch > 0 || began != cmp.Or(h.oldest[m.Account], m); follows && began.Time.After(m.first()) {
		return began.Time
	}
	return m.first()
}

// chooseUntil returns for each account the manifest of the newest backup that has no write
// after o.Until.
func (r *Repository) chooseUntil(ctx context.Context, names []string, o RestoreOptions) ([]*manifest, error) {
	var list []*manifest
	unread := make(map[string][]error)  // by account
	first := make(map[string]*manifest) // the oldest backup that is too late
	from, known := (*manifest).first, (*histories)(nil)
	if o.ID == "" { // else it says which database is wanted
		var err error
		if known, err = r.histories(ctx, names); err != nil {
			return nil, err
		}
		from = known.from
	}
	chosen := make(map[string]bool)
	for _, name := range slices.Backward(names) {
		account, id, _ := splitManifestName(name)
		if chosen[account] || o.ID != "" && o.ID != id {
			continue
		}
		m, err := r.manifest(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed since names
		case unreadable(err):
			unread[account] = append(unread[account], err) // an older one with more of the archive has the same writes
		case err != nil:
			return nil, err
		case from(m).After(o.Until):
			first[account] = m
		default:
			chosen[account] = true
			list = append(list, m)
		}
	}
	var errs []error
	for _, account := range slices.Sorted(maps.Keys(unread)) {
		if !chosen[account] {
			errs = append(errs, unread[account]...)
		}
	}
	for _, m := range list {
		if known == nil {
			break
		}
		if err := r.checkHidden(ctx, known, names, m.Account, o.Until); err != nil {
			errs = append(errs, fmt.Errorf("it is not known which database account %s had then; name a backup: %w", m.Account, err))
		}
	}
	for _, account := range slices.Sorted(maps.Keys(first)) {
		if !chosen[account] {
			errs = append(errs, fmt.Errorf("%w: the first possible time of account %s is %s, that of its first backup",
				ErrOutOfRange, account, from(first[account]).UTC().Format(time.RFC3339Nano)))
		}
	}
	if len(errs) == 0 && len(list) == 0 {
		errs = append(errs, o.noBackup())
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(list, func(a, b *manifest) int { return strings.Compare(a.Account, b.Account) })
	return list, nil
}

// toApply returns what leads from a backup to a moment by the archive.
func (r *Repository) toApply(ctx context.Context, m *manifest, until time.Time) (rollforward.Options, error) {
	prefix, objects, err := r.archived(ctx, m.Account)
	o := rollforward.Options{
		Epoch: m.Epoch, Base: edm.TicksOf(m.first()), Until: edm.TicksOf(until),
		Open: func(ctx context.Context, name string) (io.ReadCloser, error) { return r.target.Get(ctx, prefix+name) },
	}
	for _, object := range objects {
		o.Names = append(o.Names, strings.TrimPrefix(object.Name, prefix))
	}
	return o, err
}

// checkArchive returns an error if the archive does not lead from a backup to a moment.
func (r *Repository) checkArchive(ctx context.Context, m *manifest, until time.Time) error {
	o, err := r.toApply(ctx, m, until)
	if err != nil {
		return err
	}
	return rollforward.Check(ctx, o, m.databaseID(), m.LastSequence)
}

// rollForward applies the archive to a restored database and returns the last sequence
// number.
func (s *restore) rollForward(ctx context.Context, dir string, m *manifest) (uint64, error) {
	o, err := s.toApply(ctx, m, s.until)
	if err != nil {
		return 0, err
	}
	o.FS, o.Dir, o.Applied = s.fs, dir, func(int, int) { s.report(0) }
	return rollforward.Apply(ctx, o)
}

// PutMark notes in the archive of the database in dir that each write up to a moment has a
// sequence number up to last. So Restore knows that nothing is missing up to that moment,
// even if nothing was written for long. DB.Flush gives the archive what it does not have, and
// does not wait for it: Stats.ArchiveWaiting is 0 when the archive has it.
func PutMark(ctx context.Context, t Target, account string, fsys vfs.FS, dir string, last uint64, at time.Time) error {
	if err := checkAccount(account); err != nil {
		return err
	}
	db, err := dbmanifest.Read(fsys, dir)
	if err != nil {
		return err
	}
	m := archive.Mark{DBID: db.DBID, Epoch: db.Epoch, Last: last, At: edm.TicksOf(at)}
	name := path.Join(account, archiveDir, archive.MarkName(db.Epoch, db.DBID))
	return t.Put(ctx, name, bytes.NewReader(archive.AppendMark(nil, &m)))
}

// Reaches returns the last sequence number up to which the backups and the archive of the
// database in dir have all writes, 0 if they have none of its epoch. If the database has later writes that it
// will not archive, because they were flushed without an archive, make a backup: the archive
// goes on after it.
func (r *Repository) Reaches(ctx context.Context, account string, fsys vfs.FS, dir string) (last uint64, err error) {
	if err := checkAccount(account); err != nil {
		return 0, err
	}
	db, err := dbmanifest.Read(fsys, dir)
	if err != nil {
		return 0, err
	}
	last, chunks, err := r.stored(ctx, account, db)
	slices.SortFunc(chunks, func(a, b archive.Range) int { return cmp.Compare(a.First, b.First) })
	for _, chunk := range chunks {
		if chunk.First <= last+1 { // else writes between them are missing
			last = max(last, chunk.Last)
		}
	}
	return last, err
}

// needs is what the backups that Prune keeps need of the archive: for each database and
// epoch the writes after this sequence number.
type needs map[string]uint64

func (n needs) add(m *manifest) {
	prefix := archive.Prefix(m.Epoch, m.databaseID())
	if last, ok := n[prefix]; !ok || m.LastSequence < last {
		n[prefix] = m.LastSequence
	}
}

// has reports whether an object of the archive is needed.
func (n needs) has(name string) bool {
	i := strings.LastIndexByte(name, '/')
	last, ok := n[name[:i+1]]
	_, chunk, isChunk := archive.ParseName(name[i+1:])
	return ok && (!isChunk || chunk.Last > last)
}

// pruneArchive removes the chunks that no backup needs.
func (r *Repository) pruneArchive(ctx context.Context, account string, kept needs, p *Pruned) error {
	prefix, objects, err := r.archived(ctx, account)
	if err != nil {
		return err
	}
	for _, object := range objects {
		if kept.has(strings.TrimPrefix(object.Name, prefix)) {
			continue
		}
		if err := r.target.Delete(ctx, object.Name); err != nil {
			return fmt.Errorf("remove %s: %w", object.Name, err)
		}
		p.Files, p.Bytes = p.Files+1, p.Bytes+object.Size
	}
	return nil
}

// archives returns the objects in the archive of an account, or with "" of all accounts.
func (r *Repository) archives(ctx context.Context, account string) ([]Object, error) {
	prefix := ""
	if account != "" {
		prefix = account + "/" + archiveDir + "/"
	}
	objects, err := r.target.List(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list the archive: %w", err)
	}
	return slices.DeleteFunc(objects, func(o Object) bool { return !strings.Contains(o.Name, "/"+archiveDir+"/") }), nil
}

// verifyArchive reads objects of the archive, calls show after each, and adds those that are
// damaged to the report.
func (r *Repository) verifyArchive(ctx context.Context, objects []Object, report *Report, show func(n int64)) error {
	for _, object := range objects {
		_, name, _ := strings.Cut(object.Name, "/"+archiveDir+"/")
		err := r.verifyArchived(ctx, object.Name, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed since List
		}
		if errors.Is(err, feature.ErrNewerFormat) {
			report.Newer = append(report.Newer, Finding{Object: object.Name, What: whatOf(err)})
			continue
		}
		report.Objects++
		report.Bytes += object.Size
		show(0)
		switch {
		case errors.Is(err, corrupt.ErrCorrupt):
			report.Findings = append(report.Findings, Finding{Object: object.Name, What: whatOf(err)})
		case err != nil:
			return err
		}
	}
	return nil
}

// verifyArchived reads a chunk or a mark, whose name in the archive is name.
func (r *Repository) verifyArchived(ctx context.Context, object, name string) error {
	if path.Base(name) == path.Base(archive.MarkName(0, [16]byte{})) {
		b, err := get(ctx, r.target, object, archive.MarkLen)
		if err == nil {
			_, err = archive.DecodeMark(name, b)
		}
		return err
	}
	src, err := r.target.Get(ctx, object)
	if err != nil {
		return err
	}
	chunk, err := archive.NewReader(name, src)
	if err == nil && chunk.Name() != name {
		err = corrupt.Newf(name, 0, "it is the chunk %s", chunk.Name())
	}
	if err == nil {
		err = chunk.Verify()
	}
	return errors.Join(err, src.Close())
}
