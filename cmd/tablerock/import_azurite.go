package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
	"github.com/tablerock-db/tablerock/store"
)

// isAzurite reports whether the file called name is one of Azurite's tables.
func (f *importFlags) isAzurite(name string) bool {
	_, inner := transfer.CompressionOf(filepath.Base(name))
	return f.format == formatAzurite || f.format == "" && inner == transfer.AzuriteFile
}

// noAzuriteTable returns the error of a file of Azurite that lacks the table of the account, or
// any table of it if table is "". has are the tables in the file.
func (a *app) noAzuriteTable(file, table string, has []string) error {
	const most = 10
	list := "no table"
	if len(has) > 0 {
		list = strings.Join(has[:min(len(has), most)], ", ")
	}
	if len(has) > most {
		list += fmt.Sprintf(" and %d more", len(has)-most)
	}
	what := "table " + table
	if table == "" {
		what = "a table"
	}
	advice := "--account names another account"
	if a.server != nil {
		advice = "a server gets those of its own account: import others with --data DIR, and copy them to it with \"tablerock copy\""
	}
	return hint.With(fmt.Errorf("%s: %s of account %s: %w", file, what, a.account, store.ErrTableNotFound), "the file has "+list+"; "+advice)
}

// importAzurite imports the tables in a file of Azurite.
func (a *app) importAzurite(cmd *cobra.Command, args []string, f *importFlags) error {
	for _, name := range []string{"partition-key", "row-key", "delimiter", "header", "ack"} {
		if cmd.Flags().Changed(name) {
			return usagef("--%s is not for a file of Azurite", name)
		}
	}
	file, table := args[len(args)-1], ""
	if len(args) == 2 {
		table = args[0]
	}
	plain := *f
	plain.format = output.JSON
	read, o, err := plain.options(file)
	if err != nil {
		return err
	}
	src, err := a.openSource(cmd.Context(), file)
	if err != nil {
		return err
	}
	read.Name = src.name
	oneAccount := table != "" || cmd.Flags().Changed("account") || a.server != nil // a server is one account
	tables, skipped := 0, false
	var has []string // the tables of all accounts
	err = transfer.ReadAzurite(cmd.Context(), src, read, func(account, name string, rows *transfer.Reader) error {
		has = append(has, name+" of account "+account)
		if oneAccount && account != a.account || table != "" && edm.FoldTableName(name) != edm.FoldTableName(table) {
			return nil
		}
		if !sharedkey.IsAccountName(account) {
			return fmt.Errorf("%s: account %q: a storage account's name is 3 to 24 lower-case letters and digits", read.Name, account)
		}
		tables++
		of := *a
		of.account = account
		a.note("account %s, table %s:", account, name)
		err := of.load(cmd.Context(), name, src, rows, o, "")
		if quiet := (*quietError)(nil); errors.As(err, &quiet) {
			skipped = true
			return nil
		}
		return err
	})
	switch {
	case err == nil && tables == 0 && oneAccount:
		err = a.noAzuriteTable(read.Name, table, has)
	case err == nil && skipped:
		err = &quietError{exitFailure}
	case err == nil:
		a.note("imported %s; access policies of tables and properties of the service are not in the import", quantity.Plural(int64(tables), "table"))
	}
	return errors.Join(err, src.close())
}
