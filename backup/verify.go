package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/tablerock-db/tablerock/internal/corrupt"
)

// Report is the result of Verify.
type Report struct {
	Backups  int
	Objects  int // read: manifests, and each file once
	Bytes    int64
	Findings []Finding
}

// Finding is a damaged or missing object.
type Finding struct {
	Object  string
	What    string
	Backups []string // ids of the backups of the account that need it
}

// Verify reads all bytes of the backups and the archive of an account, or with "" of all accounts, and
// compares them with their checksums. Damage is in the Report and is not an error. Verify can run
// beside Prune of another process: what is removed meanwhile is not missing.
func (r *Repository) Verify(ctx context.Context, account string, progress Progress) (Report, error) {
	var report Report
	if r.damage != nil {
		report.Findings = append(report.Findings, Finding{Object: markerName, What: whatOf(r.damage)})
	}
	names, err := r.names(ctx, account)
	if err != nil {
		return report, err
	}
	files := make(map[string]*file)    // by object
	needs := make(map[string][]string) // the names of the manifests that list it
	var objects []string
	var total int64
	for _, name := range names {
		report.Objects++
		_, id, _ := splitManifestName(name)
		m, err := r.manifest(ctx, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			report.Objects--
			continue
		case errors.Is(err, corrupt.ErrCorrupt), errors.Is(err, ErrNotBackup):
			report.Findings = append(report.Findings, Finding{name, whatOf(err), []string{id}})
			continue
		case err != nil:
			return report, err
		}
		report.Backups++
		for i := range m.Files {
			f := &m.Files[i]
			if files[f.Object] == nil {
				files[f.Object], total = f, total+f.Bytes
				objects = append(objects, f.Object)
			}
			needs[f.Object] = append(needs[f.Object], name)
		}
	}
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
	slices.Sort(objects)
	for _, object := range objects {
		err := r.read(ctx, files[object], io.Discard, show)
		report.Objects++
		report.Bytes += files[object].Bytes
		switch {
		case errors.Is(err, corrupt.ErrCorrupt):
			ids, listErr := r.remaining(ctx, account, needs[object])
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
	err = r.verifyArchive(ctx, archive, &report, show)
	return report, err
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
