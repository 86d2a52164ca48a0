package backup

import (
	"context"
	"fmt"
	"path"
)

// Pruned says what Prune removed.
type Pruned struct {
	Backups, Files int   // files with the chunks of the archive
	Bytes          int64 // of the files
}

// Prune removes all but the newest backups of an account, keep at least one, and the files
// and the archived chunks that no other backup needs. It removes no file if a manifest that it keeps is damaged,
// because that backup may need the file. After an error, call it again to go on.
func (r *Repository) Prune(ctx context.Context, account string, keep int) (Pruned, error) {
	var p Pruned
	if err := checkAccount(account); err != nil {
		return p, err
	}
	r.writes.Lock()
	defer r.writes.Unlock()
	if err := r.Check(ctx); err != nil {
		return p, err
	}
	names, err := r.names(ctx, account)
	if err != nil {
		return p, err
	}
	kept := names[max(0, len(names)-max(keep, 1)):]
	needed, archived := make(map[string]bool), make(needs)
	for _, name := range kept {
		m, err := r.manifest(ctx, name)
		if err != nil {
			return p, fmt.Errorf("nothing is removed, because a backup to keep cannot be read: %w", err)
		}
		archived.add(m)
		m.objects(needed)
	}
	// The manifests first: no manifest may list a file that is gone.
	for _, name := range names[:len(names)-len(kept)] {
		if err := r.target.Delete(ctx, name); err != nil {
			return p, fmt.Errorf("remove %s: %w", name, err)
		}
		p.Backups++
	}
	files, err := r.target.List(ctx, path.Join(account, filesDir)+"/")
	if err != nil {
		return p, fmt.Errorf("list the files: %w", err)
	}
	for _, f := range files {
		if needed[f.Name] {
			continue
		}
		if err := r.target.Delete(ctx, f.Name); err != nil {
			return p, fmt.Errorf("remove %s: %w", f.Name, err)
		}
		p.Files, p.Bytes = p.Files+1, p.Bytes+f.Size
	}
	err = r.pruneArchive(ctx, account, archived, &p)
	return p, err
}

// Accounts returns the accounts that have backups, in the order of their names.
func (r *Repository) Accounts(ctx context.Context) ([]string, error) {
	names, err := r.names(ctx, "")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	var accounts []string
	for _, name := range names {
		if account, _, _ := splitManifestName(name); !seen[account] {
			seen[account] = true
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 0 {
		return nil, ErrNoBackup
	}
	return accounts, nil
}
