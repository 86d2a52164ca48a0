package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/output"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/quantity"
	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/internal/transfer"
)

// isAzurite reports whether the file called name is one of Azurite's tables.
func (f *importFlags) isAzurite(name string) bool {
	_, inner := transfer.CompressionOf(filepath.Base(name))
	return f.format == formatAzurite || f.format == "" && inner == transfer.AzuriteFile
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
	err = transfer.ReadAzurite(cmd.Context(), src, read, func(account, name string, rows *transfer.Reader) error {
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
		err = fmt.Errorf("%s: it has no such table of account %s; --account names another", read.Name, a.account)
	case err == nil && skipped:
		err = &quietError{exitFailure}
	case err == nil:
		a.note("imported %s; access policies of tables and properties of the service are not in the import", quantity.Plural(int64(tables), "table"))
	}
	return errors.Join(err, src.close())
}
