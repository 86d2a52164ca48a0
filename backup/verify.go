package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/tablerock-db/tablerock/internal/corrupt"
	"github.com/tablerock-db/tablerock/internal/feature"
)

// Report is the result of Verify.
type Report struct {
	Backups  int
	Objects  int // read: manifests, and each file once
	Bytes    int64
	Findings []Finding
	Newer    []Finding // objects of a newer build, which were not checked
}

// Finding is a damaged or missing object, or one of a newer build.
type Finding struct {
	Object  string
	What    string
	Backups []string // ids of the backups of the account that need it
}

// Verify reads all bytes of the backups and the archive of an account, or with "" of all accounts, and
// compares them with their checksums. Damage is in the Report and is not an error. If a newer build
// wrote some of the objects, all others are checked, and the error wraps store.ErrNewerFormat.
// Verify can run beside Prune of another process: what is removed meanwhile is not missing.
func (r *Repository) Verify(ctx context.Context, account string, progress Progress) (Report, error) {
	var report Report
	if r.damage != nil {
		report.Findings = append(report.Findings, Finding{Object: markerName, What: whatOf(r.damage)})
	}
	l, err := r.verifyManifests(ctx, account, &report)
	if err != nil {
		return report, err
	}
	total := l.bytes
	archive, err := r.archives(ctx, account)
	if err != nil {
		return report, err
	}
	for _, object := range archive {
		total += object.Size
	}
	show := func(n int64) {
		if progress != nil {
			progress(report.Bytes+n, total)
		}
	}
	for _, object := range slices.Sorted(maps.Keys(l.files)) {
		err := r.read(ctx, l.files[object], io.Discard, show)
		report.Objects++
		report.Bytes += l.files[object].Bytes
		switch {
		case errors.Is(err, corrupt.ErrCorrupt):
			ids, listErr := r.remaining(ctx, account, l.needs[object])
			if listErr != nil {
				return report, listErr
			}
			if len(ids) > 0 {
				report.Findings = append(report.Findings, Finding{object, whatOf(err), ids})
			}
		case err != nil:
			return report, err
		}
	}
	if err := r.verifyArchive(ctx, archive, &report, show); err != nil {
		return report, err
	}
	if n := len(report.Newer); n > 0 {
		return report, fmt.Errorf("not checked: %d of %d objects: %w", n, n+report.Objects, feature.ErrNewerFormat)
	}
	return report, nil
}

// listed are the objects of the manifests.
type listed struct {
	files map[string]*file    // by object
	needs map[string][]string // the names of the manifests that list it
	bytes int64               // of the files
}

// verifyManifests reads the manifests of an account, and adds those that are damaged or of a newer
// build to the report.
func (r *Repository) verifyManifests(ctx context.Context, account string, report *Report) (*listed, error) {
	names, err := r.names(ctx, account)
	if err != nil {
		return nil, err
	}
	l := &listed{files: make(map[string]*file), needs: make(map[string][]string)}
	for _, name := range names {
		_, id, _ := splitManifestName(name)
		m, err := r.manifest(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case errors.Is(err, feature.ErrNewerFormat):
			report.Newer = append(report.Newer, Finding{name, whatOf(err), []string{id}})
			continue
		case errors.Is(err, corrupt.ErrCorrupt), errors.Is(err, ErrNotBackup):
			report.Objects++
			report.Findings = append(report.Findings, Finding{name, whatOf(err), []string{id}})
			continue
		case err != nil:
			return nil, err
		}
		report.Objects++
		report.Backups++
		for i := range m.Files {
			f := &m.Files[i]
			if l.files[f.Object] == nil {
				l.files[f.Object] = f
				l.bytes += f.Bytes
			}
			l.needs[f.Object] = append(l.needs[f.Object], name)
		}
	}
	return l, nil
}

// remaining returns the ids of those manifests that were not removed since they were read.
func (r *Repository) remaining(ctx context.Context, account string, manifests []string) (ids []string, err error) {
	names, err := r.names(ctx, account)
	for _, name := range manifests {
		if slices.Contains(names, name) {
			_, id, _ := splitManifestName(name)
			ids = append(ids, id)
		}
	}
	return ids, err
}

// whatOf describes damage without the name of the object.
func whatOf(err error) string {
	var damage *corrupt.Error
	switch {
	case errors.As(err, &damage):
		return damage.What
	case errors.Is(err, fs.ErrNotExist):
		return "it is missing"
	case errors.Is(err, feature.ErrNewerFormat):
		return "not checked: a newer version of Tablerock wrote it"
	}
	return err.Error()
}

// read writes the object of a file to w and compares it with the manifest.
func (r *Repository) read(ctx context.Context, f *file, w io.Writer, report func(n int64)) error {
	src, err := r.target.Get(ctx, f.Object)
	if errors.Is(err, fs.ErrNotExist) {
		return corrupt.Newf(f.Object, 0, "it is missing")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Object, err)
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, &checkedReader{r: src, name: f.Object, file: f, report: report}, make([]byte, copyBytes))
	return errors.Join(err, src.Close())
}
