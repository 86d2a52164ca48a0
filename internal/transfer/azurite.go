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
	a := &azurite{o: o, json: jsonScanner{newInput(r)}, each: each, spelled: map[string]string{}}
	err := a.json.in.checkStart(o.Compression)
	if err == nil {
		err = a.object(func(name string) error {
			if name == "collections" {
				a.found = true
				return a.array(a.collection)
			}
			return a.json.skip()
		})
	}
	if err == nil && !a.found {
		err = errors.New("it has no collections")
	}
	var of *eachError
	if !errors.As(err, &of) {
		if stop := a.json.in.checkRest(ctx); stop != nil {
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
	o       ReadOptions
	json    jsonScanner
	each    func(account, table string, rows *Reader) error
	found   bool              // the list of collections
	spelled map[string]string // name of each collection of entities, folded, to its table
}

// The collections of Azurite that hold no entities begin with $.
const (
	azuriteTables = "$TABLES_COLLECTION$"
	collectionEnd = "$"
)

// object reads an object. member consumes the value of each member.
func (a *azurite) object(member func(name string) error) error {
	return a.list('{', '}', func() error {
		c, err := a.json.peek()
		if err != nil {
			return err
		}
		if c != '"' {
			return a.json.syntax(c, "the name of a member")
		}
		name, err := a.text()
		if err != nil {
			return err
		}
		if err := a.json.expect(':'); err != nil {
			return err
		}
		return member(name)
	})
}

// array reads an array. item consumes each item.
func (a *azurite) array(item func() error) error { return a.list('[', ']', item) }

func (a *azurite) list(open, end byte, item func() error) error {
	if err := a.json.expect(open); err != nil {
		return err
	}
	for first := true; ; first = false {
		c, err := a.json.peek()
		switch {
		case err != nil:
			return err
		case c == end:
			a.json.in.consume(1, 0)
			return nil
		case !first:
			if err := a.json.expect(','); err != nil {
				return err
			}
		}
		if err := item(); err != nil {
			return err
		}
	}
}

// text reads a string.
func (a *azurite) text() (s string, err error) { return s, a.decode(&s) }

// decode reads a value into to.
func (a *azurite) decode(to any) error {
	text, err := a.json.value()
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// collection reads one collection.
func (a *azurite) collection() error {
	collection := ""
	return a.object(func(name string) (err error) {
		switch {
		case name == "name":
			collection, err = a.text()
			return err
		case name != "data":
			return a.json.skip()
		case collection == "":
			return errors.New("a collection has data before its name")
		case collection == azuriteTables:
			return a.array(a.table)
		case strings.HasPrefix(collection, collectionEnd):
			return a.json.skip()
		}
		return a.entities(collection)
	})
}

// table reads an item of the list of tables.
func (a *azurite) table() error {
	var t struct{ Account, Table string }
	if err := a.decode(&t); err != nil {
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
		return a.json.skip() // a table that was deleted, in files of old versions
	}
	src := &azuriteSource{array: arraySource{json: a.json}}
	o := a.o
	o.Name = fmt.Sprintf("%s: account %s, table %s", o.Name, account, table)
	rows := &Reader{o: o, file: a.json.in.file, in: a.json.in, src: src, started: true, unit: "entity"}
	if err := a.each(account, table, rows); err != nil {
		return &eachError{err}
	}
	for { // what each has left
		switch _, err := src.array.item(); {
		case err == io.EOF:
			return nil
		case err != nil && err != errTooLong:
			return err
		}
	}
}

// azuriteSource reads the entities of one collection. The lines of its records are the
// numbers of the entities, because the file has one line.
type azuriteSource struct {
	array arraySource
	n     int64
}

func (s *azuriteSource) next() (Record, error) {
	text, err := s.array.item()
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
