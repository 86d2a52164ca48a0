package backup_test

import (
	"context"
	"fmt"
	"io"
	"testing"

	"github.com/tablerock-db/tablerock/backup"
)

// interrupted is a target that calls do before Get number at.
type interrupted struct {
	backup.Target
	at int
	do func()
}

func (i *interrupted) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if i.at--; i.at == 0 {
		i.do()
	}
	return i.Target.Get(ctx, name)
}

// TestReadsBesidePrune lists, verifies and restores backups. Before each object that they
// read, another process removes all backups but the newest.
func TestReadsBesidePrune(t *testing.T) {
	for name, read := range map[string]func(a *archived, r *backup.Repository) error{
		"list": func(a *archived, r *backup.Repository) error {
			list, err := r.List(t.Context(), account)
			if err == nil && (len(list) == 0 || !list[len(list)-1].Time.Equal(a.now)) {
				err = fmt.Errorf("the backups are %+v", list)
			}
			return err
		},
		"verify": func(_ *archived, r *backup.Repository) error {
			report, err := r.Verify(t.Context(), "", nil)
			if err == nil && (len(report.Findings) > 0 || report.Backups == 0) {
				err = fmt.Errorf("the report is %+v", report)
			}
			return err
		},
		"restore": func(a *archived, r *backup.Repository) error {
			_, err := r.Restore(t.Context(), a.disk, "restored", backup.RestoreOptions{})
			return err
		},
		"restore until a moment": func(a *archived, r *backup.Repository) error {
			_, err := r.Restore(t.Context(), a.disk, "restored", backup.RestoreOptions{Until: a.now})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at, done := 1, false; !done; at++ {
				a := newArchived(t)
				for _, row := range []string{"a", "b", "c"} {
					a.put(row)
					a.backup()
				}
				done = true
				_, err := backup.Open(t.Context(), a.target)
				a.ok(err)
				other := &interrupted{Target: a.target, at: at + 1, do: func() { // one Get is that of Open
					done = false
					_, err := a.r.Prune(t.Context(), account, 1)
					a.ok(err)
				}}
				r, err := backup.Open(t.Context(), other)
				if err == nil {
					err = read(a, r)
				}
				if err != nil {
					t.Errorf("removed before object %d: %v", at, err)
				}
				a.ok(a.db.Close())
			}
		})
	}
}
