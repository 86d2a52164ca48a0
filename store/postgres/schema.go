package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres/internal/wire"
)

// The versions of the schema that this package reads and writes: Init makes the newest one. Version 1 has a tr_clock without
// an index of the base.
const (
	oldestVersion = 1
	schemaVersion = 2
)

// The tables. All names of accounts are case-sensitive; folded names of tables are bytea, so
// that their order is that of their bytes in every collation.
//
//	tr_version   the version of the schema, in one row
//	tr_accounts  accounts with their metadata
//	tr_tables    tables: a new id for each table, also one of an old name; long is set
//	             from the first key in tr_long on
//	tr_dead      ids of dropped tables, until the sweeper has removed their entities and no
//	             transaction older than xid can add one
//	tr_entities  entities: p and r are the keys in CESU-8, whose byte order is the order of
//	             UTF-16 code units; ts is the Timestamp, v the properties (see value.go)
//	tr_long      entities whose key is longer than maxIndexed: h is SHA-256 of the lengths
//	             and bytes of p and r; of two indexes that cost the same, as in an empty
//	             table, PostgreSQL takes the later one, which therefore is the primary key
//	tr_clock     the base of Timestamps, in one row, whose index leads to its live version: see beat.go
//	tr_tick      the sequence that is added to the base
const schemaSQL = `
CREATE TABLE tr_version (one int PRIMARY KEY CHECK (one = 1), version int NOT NULL);
CREATE TABLE tr_accounts (account text PRIMARY KEY, meta bytea NOT NULL);
CREATE TABLE tr_tables (
	account text NOT NULL, folded bytea NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY,
	name text NOT NULL, created bigint NOT NULL, meta bytea NOT NULL, long boolean NOT NULL,
	PRIMARY KEY (account, folded));
CREATE TABLE tr_dead (id bigint PRIMARY KEY, xid bigint NOT NULL, dropped bigint NOT NULL);
CREATE TABLE tr_entities (
	tid bigint NOT NULL, p bytea NOT NULL, r bytea NOT NULL, ts bigint NOT NULL, v bytea NOT NULL,
	PRIMARY KEY (tid @ASC, p @ASC, r @ASC))@ENTITIES;
CREATE TABLE tr_long (
	tid bigint NOT NULL, h bytea NOT NULL, p bytea NOT NULL, r bytea NOT NULL, ts bigint NOT NULL, v bytea NOT NULL)@ENTITIES;
CREATE INDEX tr_long_key ON tr_long (tid @ASC, substr(p, 1, 1200) @ASC, substr(r, 1, 1200) @ASC);
ALTER TABLE tr_long ADD PRIMARY KEY (tid @ASC, h @ASC);
CREATE SEQUENCE tr_tick;
CREATE TABLE tr_clock (base bigint NOT NULL, PRIMARY KEY (base @ASC))@CLOCK;
INSERT INTO tr_clock (base) VALUES (0);
INSERT INTO tr_version (one, version) VALUES (1, ` + "@VERSION" + `);
`

const (
	// entitiesOptions leave space in each page for a new version of a row, so that an
	// overwrite changes no index, and let autovacuum start after 2 % of the rows are dead: by
	// default a table of 10 million rows collects 2 million dead ones.
	entitiesOptions = ` WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
		autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1)`
	// clockOptions: the row changes every second.
	clockOptions = ` WITH (autovacuum_vacuum_threshold = 500)`
)

// schemaFor returns the statements that create the schema.
func schemaFor(k wire.Kind) string {
	asc, entities, clock := "", entitiesOptions, clockOptions
	if k != wire.PostgreSQL {
		entities, clock = "", ""
	}
	if k == wire.YugabyteDB {
		asc = "ASC" // without it the first column is hashed
	}
	sql := strings.NewReplacer(" @ASC", strings.TrimRight(" "+asc, " "), "@ENTITIES", entities, "@CLOCK", clock,
		"@VERSION", strconv.Itoa(schemaVersion)).Replace(schemaSQL)
	if k == wire.PostgreSQL {
		sql += "ALTER TABLE tr_entities ALTER COLUMN v SET COMPRESSION lz4;\nALTER TABLE tr_long ALTER COLUMN v SET COMPRESSION lz4;\n"
	}
	return sql
}

// encodingOf returns the encoding of the database.
func encodingOf(ctx context.Context, c *wire.Conn) (string, error) {
	rows, err := c.Script(ctx, "SELECT current_setting('server_encoding')")
	if err == nil && (len(rows) != 1 || len(rows[0]) != 1) {
		err = errAnswer
	}
	if err != nil {
		return "", fmt.Errorf("read the encoding of the database: %w", err)
	}
	return rows[0][0], nil
}

// checkEncoding returns an error unless the encoding of the database is that of the texts that this
// package sends, which are names of accounts and tables.
func checkEncoding(ctx context.Context, c *wire.Conn) error {
	encoding, err := encodingOf(ctx, c)
	if err == nil && encoding != utf8 {
		err = &wire.Reason{Text: "the database has the encoding " + encoding + ", want " + utf8 + "; " + makeUTF8, Err: store.ErrNotDatabase}
	}
	return err
}

const (
	utf8     = "UTF8"
	makeUTF8 = "create another one with ENCODING 'UTF8' TEMPLATE template0"
)

// schemaOf returns the version of the schema, 0 if there is none.
func schemaOf(ctx context.Context, c *wire.Conn) (int, error) {
	rows, err := c.Script(ctx, "SELECT version FROM tr_version")
	if wire.CodeOf(err) == "42P01" {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if len(rows) != 1 || len(rows[0]) != 1 {
		return 0, damaged("tr_version")
	}
	return strconv.Atoi(rows[0][0])
}

// checkSchema returns an error unless the database has a schema that this package reads and writes.
func checkSchema(ctx context.Context, c *wire.Conn) error {
	switch version, err := schemaOf(ctx, c); {
	case err != nil:
		return fmt.Errorf("read the version of the schema: %w", err)
	case version == 0:
		return errNoSchema
	case version < oldestVersion:
		return fmt.Errorf("%w: version %d, want %d", errOldSchema, version, schemaVersion)
	case version > schemaVersion:
		return fmt.Errorf("%w: the schema has version %d, this program knows up to %d", store.ErrNewerFormat, version, schemaVersion)
	}
	return nil
}

// Init creates the schema, if there is none, and upgrades that of an older version. It returns an error that wraps store.ErrNewerFormat
// for the schema of a newer version, and store.ErrNotDatabase for a database whose encoding is not
// UTF8. It refuses a server whose commits do not wait for a standby unless o.AllowAsync is set. Run it as
// the owner of the database.
func Init(ctx context.Context, url string, o *Options) error {
	if o == nil {
		o = &Options{}
	}
	d, err := wire.NewDialer(url, o.AllowAsync, o.clock())
	if err != nil {
		return err
	}
	c, err := d.Connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	k, err := wire.KindOf(ctx, c)
	if err != nil {
		return failure(err, false)
	}
	if err := checkEncoding(ctx, c); err != nil {
		return failure(err, false)
	}
	switch version, err := schemaOf(ctx, c); {
	case err != nil:
		return fmt.Errorf("read the version of the schema: %w", failure(err, false))
	case version >= oldestVersion && version < schemaVersion:
		return upgrade(ctx, c, k)
	case version != 0:
		return failure(checkSchema(ctx, c), false)
	}
	if _, err := c.Script(ctx, "BEGIN;"+schemaFor(k)+"COMMIT"); err != nil {
		if code := wire.CodeOf(err); code == "42P07" || code == "42710" || code == "23505" || code == "40001" {
			// Another Init was faster, or the database has something else of such a name.
			c.Rollback(ctx)
			if err := checkSchema(ctx, c); !errors.Is(err, errNoSchema) {
				return failure(err, false)
			}
		}
		if code := wire.CodeOf(err); code == "0A000" || code == "42601" { // feature_not_supported, syntax_error
			return fmt.Errorf("create the schema: PostgreSQL 14 or later with lz4 is needed: %w", err)
		}
		return fmt.Errorf("create the schema: %w", failure(err, true))
	}
	return nil
}

// upgradeSQL makes version 2 of version 1. A second upgrade at the same time does the same again. Writes wait behind a lock
// that waits for a transaction, so it does not wait long.
const upgradeSQL = `SET LOCAL lock_timeout = '2s';
ALTER TABLE tr_clock DROP CONSTRAINT tr_clock_pkey, DROP COLUMN IF EXISTS one, ADD PRIMARY KEY (base);
ALTER TABLE tr_clock RESET (fillfactor);
`

// upgrade makes the schema that of this version. Others keep no dead versions in the way as PostgreSQL does, and
// cannot change the primary key of a table.
func upgrade(ctx context.Context, c *wire.Conn, k wire.Kind) error {
	sql := "UPDATE tr_version SET version = " + strconv.Itoa(schemaVersion) + ";"
	if k == wire.PostgreSQL {
		sql = upgradeSQL + sql
	}
	if _, err := c.Script(ctx, "BEGIN;"+sql+"COMMIT"); err != nil {
		return fmt.Errorf("upgrade the schema: %w", failure(err, true))
	}
	return nil
}
