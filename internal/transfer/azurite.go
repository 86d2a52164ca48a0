package transfer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/tablerock-db/tablerock/edm"
	"github.com/tablerock-db/tablerock/internal/odata"
	"github.com/tablerock-db/tablerock/internal/transfer/internal/textfile"
)

// AzuriteFile is the name of the file in which Azurite stores its tables.
const AzuriteFile = "__azurite_db_table__.json"

// ReadAzurite reads a file in which Azurite stores its tables, the JSON of a LokiJS
// database. It calls each for every table that exists, with a Reader of its entities that
// is valid until each returns, and stops at the first error. It uses the name and the
// compression of o. Access policies of tables and properties of the service are not read.
//
// The file may have any size: memory is bounded by one entity and the list of tables.
//
// It reads a compressed file to its end, also after an error, and if its data is damaged, that
// is the error. When ctx ends, it returns the error of ctx.
func ReadAzurite(ctx context.Context, r io.Reader, o ReadOptions, each func(account, table string, rows *Reader) error) error {
	a := &azurite{file: NewReader(r, o), each: each, spelled: map[string]string{}}
	err := a.file.open()
	if err == nil {
		a.json = textfile.NewJSON(a.file.text)
		err = a.json.Object(func(name string) error {
			if name == "collections" {
				a.found = true
				return a.json.Array(a.collection)
			}
			return a.json.Skip()
		})
	}
	if err == nil && !a.found {
		err = errors.New("it has no collections")
	}
	var of *eachError
	if !errors.As(err, &of) {
		if stop := a.file.checkRest(ctx); stop != nil {
			err = stop
		}
	}
	switch {
	case err == nil:
		return nil
	case of != nil:
		return of.error
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("%s: not a whole file of Azurite's tables: %w", o.Name, err)
}

// eachError is an error of the function that ReadAzurite calls.
type eachError struct{ error }

// azurite is the state of ReadAzurite.
type azurite struct {
	file    *Reader // that is open
	json    textfile.JSON
	each    func(account, table string, rows *Reader) error
	found   bool              // the list of collections
	spelled map[string]string // name of each collection of entities, folded, to its table
}

// The collections of Azurite that hold no entities begin with $.
const (
	azuriteTables = "$TABLES_COLLECTION$"
	collectionEnd = "$"
)

// collection reads one collection.
func (a *azurite) collection() error {
	collection := ""
	return a.json.Object(func(name string) error {
		switch {
		case name == "name":
			return a.json.Decode(&collection)
		case name != "data":
			return a.json.Skip()
		case collection == "":
			return errors.New("a collection has data before its name")
		case collection == azuriteTables:
			return a.json.Array(a.table)
		case strings.HasPrefix(collection, collectionEnd):
			return a.json.Skip()
		}
		return a.entities(collection)
	})
}

// table reads an item of the list of tables.
func (a *azurite) table() error {
	var t struct{ Account, Table string }
	if err := a.json.Decode(&t); err != nil {
		return err
	}
	a.spelled[strings.ToLower(t.Account+collectionEnd+t.Table)] = t.Table
	return nil
}

// entities calls each for the entities of one collection.
func (a *azurite) entities(collection string) error {
	account, _, _ := strings.Cut(collection, collectionEnd)
	table, ok := a.spelled[strings.ToLower(collection)]
	if !ok {
		return a.json.Skip() // a table that was deleted, in files of old versions
	}
	rows, src := *a.file, &azuriteSource{items: a.json.Items(false)}
	rows.o.Name = fmt.Sprintf("%s: account %s, table %s", rows.o.Name, account, table)
	rows.src, rows.started, rows.unit = src, true, "entity"
	if err := a.each(account, table, &rows); err != nil {
		return &eachError{err}
	}
	for { // what each has left
		switch _, _, _, err := src.items.Next(); {
		case err == io.EOF:
			return nil
		case err != nil && !isRowError(err):
			return err
		}
	}
}

// azuriteSource reads the entities of one collection. The lines of its records are the
// numbers of the entities, because the file has one line.
type azuriteSource struct {
	items *textfile.Items
	n     int64
}

func (s *azuriteSource) next() (Record, error) {
	text, _, _, err := s.items.Next()
	s.n++
	rec := Record{First: s.n, Last: s.n}
	if err != nil {
		return rec, err
	}
	var doc struct {
		PartitionKey, RowKey *string
		Properties           json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return rec, invalid("%v", err)
	}
	if doc.PartitionKey == nil || doc.RowKey == nil || doc.Properties == nil {
		return rec, invalid("an entity of Azurite has the members PartitionKey, RowKey and properties")
	}
	rec.Entity, err = odata.ParseEntity(doc.Properties, odata.ParseOptions{IgnoreKeys: true, Exact: true, Azurite: true})
	rec.Entity.Key = edm.Key{Partition: *doc.PartitionKey, Row: *doc.RowKey}
	return rec, err
}
