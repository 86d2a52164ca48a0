package backups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/backup"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/datadir"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/progress"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/engine"
	"github.com/tablerock-db/tablerock/vfs"
)

// Env is what the commands use of the program.
type Env struct {
	Group   func(use, short string) *cobra.Command
	Args    func(lower, upper int) cobra.PositionalArgs
	Usage   func(format string, args ...any) error
	Note    func(format string, args ...any)
	Printer func() *output.Printer
	Bar     func(name string, total int64) *progress.Bar               // nil without a terminal
	Data    func() string                                              // the data directory
	Account func() string                                              // that is named, "" for all
	Open    func(account string, work func(db *engine.DB) error) error // an existing database, for writing
	Damaged error                                                      // ends the program after a list of damage
	Missing func() error                                               // of a data directory without databases
}

// Command returns "backup" with its subcommands.
func (e *Env) Command() *cobra.Command {
	cmd := e.Group("backup", "Back up databases while they are used, and look after the backups")
	cmd.Long = `Back up databases while they are used, and look after the backups. "tablerock restore"
restores them.

Without --account, the commands are for all accounts. TABLEROCK_ACCOUNT=NAME counts as
--account; with keys, as a server has it, it does not.`
	cmd.AddCommand(e.create(), e.list(), e.verify(), e.prune())
	return cmd
}

func (e *Env) create() *cobra.Command {
	return &cobra.Command{
		Use:   "create DEST",
		Short: "Make a backup of the databases of --data",
		Long: `Make a backup of the databases of --data in the directory DEST, of all accounts or of
that of --account. Only files that DEST does not have are copied; on the same file system
they get hard links. If "tablerock serve" has the directory, that server makes the backup
of the accounts that it serves, writes DEST on its machine, and goes on with its work.

A backup that is interrupted does not exist; the same command goes on where it ended.`,
		Args: e.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := e.make(cmd.Context(), args[0], e.Account())
			for _, i := range list {
				e.Note("backup %s of account %s: %s, %s; copied %s, linked %s", i.ID, i.Account,
					quantity.Plural(int64(i.Files), "file"), quantity.Bytes(i.Bytes), quantity.Bytes(i.CopiedBytes), quantity.Bytes(i.LinkedBytes))
			}
			return hint.Interrupted(err, "the unfinished backup does not exist, and the same command goes on where it ended")
		},
	}
}

// make makes a backup through the server that has the data, or of the databases.
func (e *Env) make(ctx context.Context, dest, account string) ([]backup.Info, error) {
	show, done := e.progress("backup")
	defer done()
	absolute, err := filepath.Abs(dest)
	if err != nil {
		return nil, err
	}
	list, err := ask(ctx, e.Data(), request{absolute, account}, e.Note, show)
	if !errors.Is(err, errNoServer) {
		done()
		if err == nil {
			e.Note("made by the server that has %s", e.Data())
		}
		return list, err
	}
	accounts := []string{account}
	if account == "" {
		if accounts, err = datadir.Accounts(e.Data()); err != nil {
			return nil, err
		}
	}
	if len(accounts) == 0 {
		return nil, e.Missing()
	}
	w, err := NewWriter(ctx, dest, e.Data())
	if err != nil {
		return nil, err
	}
	list = nil
	for _, name := range accounts {
		if ctx.Err() != nil { // to open a database can take long
			err = errors.Join(err, ctx.Err())
			break
		}
		err = errors.Join(err, e.Open(name, func(db *engine.DB) error {
			made, err := w.Create(ctx, e.Data(), []Database{{name, db}}, show)
			list = append(list, made...)
			return err
		}))
	}
	return list, errors.Join(err, w.Close())
}

// progress returns a function that shows the progress of work on accounts, and one that ends
// that.
func (e *Env) progress(name string) (show Progress, done func()) {
	var bar *progress.Bar // nil without a terminal, too
	of, begun := "", false
	end := func() { bar.Done(); bar, begun = nil, false }
	return func(account string, n, total int64) {
		if !begun || of != account {
			end()
			bar, of, begun = e.Bar(strings.TrimSpace(name+" "+account), total), account, true
		}
		bar.Set(0, n)
	}, end
}

// open opens the backup directory for reading.
func open(ctx context.Context, dir string) (*backup.Repository, error) {
	r, err := backup.Open(ctx, backup.NewDir(vfs.OS(), filepath.ToSlash(dir)))
	return r, of(dir, err)
}

func (e *Env) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list DEST",
		Short: "List the backups in DEST, oldest first",
		Args:  e.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := open(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			list, err := r.List(cmd.Context(), e.Account())
			var records []output.Record
			for _, i := range list {
				records = append(records, output.Record{
					{"Account", i.Account},
					{"Backup", i.ID},
					{"Time", edm.TicksOf(i.Time).String()},
					{"Tables", len(i.Tables)},
					{"Files", i.Files},
					{"Bytes", i.Bytes},
					{"LastSequence", i.LastSequence},
				})
			}
			switch {
			case len(records) > 0 || err != nil:
			case e.Account() != "":
				e.Note("%s has no backup of account %s", args[0], e.Account())
			default:
				e.Note("%s has no backup yet", args[0])
			}
			columns := []string{"Account", "Backup", "Time", "Tables", "Files", "Bytes", "LastSequence"}
			return errors.Join(e.Printer().List(columns, records), of(args[0], err))
		},
	}
}

func (e *Env) verify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify DEST",
		Short: "Read the backups in DEST and compare every byte with its checksums",
		Long: `Read the backups in DEST and compare every byte with its checksums. The command prints
each object that is damaged or missing, with the backups that need it, and then exits 5.
It prints the objects that a newer version wrote, checks the others, and exits 7 if these
have no damage. It changes nothing, and works beside a server that writes to DEST. If you
remove a damaged object, the next backup stores it again, as long as the database has that
file.`,
		Args: e.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return hint.Interrupted(e.runVerify(cmd.Context(), args[0]), "the check is not complete, and nothing is changed")
		},
	}
}

func (e *Env) runVerify(ctx context.Context, dir string) error {
	r, err := open(ctx, dir)
	if err != nil {
		return err
	}
	if err := e.known(ctx, r, dir); err != nil {
		return err
	}
	show, done := e.progress("verify")
	report, err := r.Verify(ctx, e.Account(), func(n, total int64) { show("", n, total) })
	done()
	if err != nil && len(report.Newer) == 0 {
		return of(dir, err)
	}
	var records []output.Record
	for _, f := range slices.Concat(report.Findings, report.Newer) {
		records = append(records, output.Record{{"Object", f.Object}, {"What", f.What}, {"Backups", strings.Join(f.Backups, " ")}})
	}
	if len(records) == 0 {
		e.Note("%s, %s, %s: no damage",
			quantity.Plural(int64(report.Backups), "backup"), quantity.Plural(int64(report.Objects), "object"), quantity.Bytes(report.Bytes))
		return nil
	}
	printed := e.Printer().List([]string{"Object", "What", "Backups"}, records)
	if len(report.Findings) > 0 {
		return cmp.Or(printed, e.Damaged)
	}
	return cmp.Or(printed, of(dir, err))
}

// known returns an error if the account of the command line has no backup in r: a name with a
// mistake in it must not look like one without damage.
func (e *Env) known(ctx context.Context, r *backup.Repository, dir string) error {
	account := e.Account()
	if account == "" {
		return nil
	}
	accounts, err := r.Accounts(ctx)
	if err == nil && !slices.Contains(accounts, account) {
		err = fmt.Errorf("%w: there is none of account %s", backup.ErrNoBackup, account)
	}
	return of(dir, err)
}

func (e *Env) prune() *cobra.Command {
	keep := 0
	cmd := &cobra.Command{
		Use:   "prune DEST --keep N",
		Short: "Remove all but the newest N backups of each account",
		Long: `Remove all but the newest N backups of each account, and the files that no other backup
needs. A server with --backup-dir DEST keeps the directory locked and prunes it by
--backup-keep.`,
		Args: e.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if keep < 1 {
				return e.Usage("--keep is missing or less than 1: say how many backups of each account to keep")
			}
			return e.runPrune(cmd.Context(), args[0], e.Account(), keep)
		},
	}
	cmd.Flags().IntVar(&keep, "keep", 0, "`number` of backups of each account to keep")
	return cmd
}

func (e *Env) runPrune(ctx context.Context, dir, account string, keep int) error {
	r, err := open(ctx, dir)
	if err != nil {
		return err
	}
	if err := e.known(ctx, r, dir); err != nil {
		return err
	}
	accounts := []string{account}
	if account == "" {
		if accounts, err = r.Accounts(ctx); err != nil {
			return of(dir, err)
		}
	}
	w, err := NewWriter(ctx, dir, e.Data())
	if err != nil {
		return err
	}
	for _, name := range accounts {
		p, pruneErr := w.Prune(ctx, name, keep)
		err = errors.Join(err, pruneErr)
		if pruneErr != nil && ctx.Err() != nil {
			break
		}
		e.Note("account %s: removed %s and %s of files that no other backup needs", name, quantity.Plural(int64(p.Backups), "backup"), quantity.Bytes(p.Bytes))
	}
	return errors.Join(err, w.Close())
}

// Restore returns "restore".
func (e *Env) Restore() *cobra.Command {
	at, id, until := "", "", ""
	cmd := &cobra.Command{
		Use:   "restore SRC DEST",
		Short: "Restore a backup to a new data directory",
		Long: `Restore the newest backup of each account in SRC, a directory of "tablerock backup
create", to the data directory DEST, which must be empty or not exist. Then
"tablerock serve --data DEST" serves it.

The command works in DEST.restoring, verifies every byte there, and renames it at the end.
After an interruption or an error the same command goes on.

With --until it restores every write up to a time and no other, by the newest backup before
that time and the archive that "tablerock serve --backup-dir" keeps with the backups.`,
		Args: e.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := backup.RestoreOptions{Account: e.Account(), ID: id}
			if at != "" {
				var err error
				if o.At, err = parseTime(at); err != nil || id != "" {
					return e.Usage("--at %q: must be a time as 2026-01-02T03:04:05Z or \"2026-01-02 03:04\" (of this machine), and excludes --backup", at)
				}
			}
			if until != "" {
				var err error
				if o.Until, err = parseTime(until); err != nil || at != "" {
					return e.Usage("--until %q: must be a time as 2026-01-02T03:04:05.1234567Z or \"2026-01-02 03:04:05\" (of this machine), and excludes --at", until)
				}
			}
			err := e.restore(cmd.Context(), args[0], args[1], o)
			state := "nothing is restored"
			dir := filepath.Clean(args[1]) + backup.Restoring
			if _, unseen := os.Stat(dir); unseen == nil {
				state = dir + " is unfinished: the same command goes on, or remove it"
				if err != nil && !errors.Is(err, context.Canceled) {
					e.Note("%s is unfinished: a restore to %s goes on there, or remove it", dir, args[1])
				}
			}
			return hint.Interrupted(err, state)
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "restore the newest backup that is not later than this `time`")
	cmd.Flags().StringVar(&until, "until", "", "restore all writes up to this `time`, by a backup and the archive of \"tablerock serve --backup-dir\"")
	cmd.Flags().StringVar(&id, "backup", "", "restore the backup with this `id`, as \"tablerock backup list\" prints it")
	return cmd
}

// parseTime parses a time, which is local without a zone.
func parseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	var t time.Time
	var err error
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05"} {
		if t, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			break
		}
	}
	return t, err
}

func (e *Env) restore(ctx context.Context, src, dest string, o backup.RestoreOptions) error {
	r, err := open(ctx, src)
	if err != nil {
		return err
	}
	if inside(dest, src) {
		return e.Usage("%s is inside the backup directory %s; name a directory elsewhere", dest, src)
	}
	if err := datadir.Outside(dest); err != nil {
		return e.Usage("restore to %s: %v; name a directory elsewhere", dest, err)
	}
	absolute, err := filepath.Abs(dest)
	if err != nil {
		return err
	}
	show, done := e.progress("restore")
	o.Progress = func(n, total int64) { show("", n, total) }
	list, err := r.Restore(ctx, vfs.OS(), filepath.ToSlash(absolute), o)
	done()
	if err != nil {
		return of(src, err)
	}
	slices.SortFunc(list, func(a, b backup.Info) int { return strings.Compare(a.Account, b.Account) })
	for _, i := range list {
		if !o.Until.IsZero() {
			e.Note("restored account %s up to %s, write %d, by the backup %s and the archive", i.Account, edm.TicksOf(o.Until), i.LastSequence, i.ID)
			continue
		}
		e.Note("restored account %s as of %s: %s, %s", i.Account, i.ID, quantity.Plural(int64(len(i.Tables)), "table"), quantity.Bytes(i.Bytes))
	}
	e.Note("serve it by: tablerock serve --data %s", dest)
	return nil
}
