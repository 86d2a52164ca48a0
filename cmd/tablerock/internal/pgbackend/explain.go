package pgbackend

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
)

// errSilent is the cause of the end of connectTime.
var errSilent = fmt.Errorf("no answer within %s: %w", connectTime, store.ErrUnavailable)

// refusals are the next steps after an answer of PostgreSQL, by its SQLSTATE or the class of
// it, and the error that has the exit code.
var refusals = []struct {
	state string
	is    error
	next  string
}{
	{
		"28", fs.ErrPermission, "check the user, pg_hba.conf of the server, and the password: it is read from PGPASSFILE or ~/.pgpass, " +
			"a service file, PGPASSWORD, or the URL in TABLEROCK_BACKEND",
	},
	{"22023", errors.ErrUnsupported, "correct this parameter of the URL"},
	{"42704", errors.ErrUnsupported, "correct this parameter of the URL, or remove it"},
	{"3F000", fs.ErrNotExist, `create the schema by "CREATE SCHEMA", or correct the search_path of the URL or the user`},
	{"42P07", errors.ErrUnsupported, "another program has tables here: name a database of its own, or a schema by ?search_path=SCHEMA in the URL"},
	{"3D000", fs.ErrNotExist, `create the database by "createdb", and its schema by "tablerock backend init"`},
	{"42501", fs.ErrPermission, `grant the user the rights on the schema, or run "tablerock backend init" as its owner`},
	{
		"53300", nil, "raise max_connections of PostgreSQL, or lower --backend-conns of the servers that use it; " +
			"if the message names a user or a database, raise its CONNECTION LIMIT",
	},
	{"55P03", nil, "a transaction that uses the tables, such as that of pg_dump, does not end: try again when it has ended"},
	{"57P03", nil, "PostgreSQL starts or recovers: try again"},
}

// noTLS is the end of the driver's error if it may not connect without TLS.
const noTLS = "server refused TLS connection"

// named is an error about a database. The driver says the same once for each way to connect,
// in lines, which the text has once.
type named struct {
	url *URL
	err error
}

// needless is the begin of errors that a user reads with their next step.
const needless = "store is unavailable: connect to the database: "

func (e *named) Error() string {
	var lines []string
	for line := range strings.SplitSeq(e.err.Error(), "\n") {
		if !slices.ContainsFunc(lines, func(other string) bool { return strings.HasSuffix(other, line) }) {
			lines = append(lines, line)
		}
	}
	return e.url.text + ": " + Redact(strings.TrimPrefix(strings.Join(lines, "; "), needless))
}

func (e *named) Unwrap() error { return e.err }

// coded is an error whose class is another one: a refusal that lasts is not ErrUnavailable for
// a user, who must do something before the next try.
type coded struct {
	error
	is error
}

func (e *coded) Unwrap() error { return e.is }

// explain adds the database and the next step to an error.
func explain(ctx context.Context, u *URL, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	about := error(&named{u, err})
	var answer interface{ SQLState() string }
	if errors.As(err, &answer) {
		for _, r := range refusals {
			switch {
			case !strings.HasPrefix(answer.SQLState(), r.state):
				continue
			case r.is != nil:
				about = &coded{about, r.is}
			}
			return hint.With(about, r.next)
		}
	}
	switch {
	case errors.Is(err, postgres.ErrAsync):
		return hint.With(&coded{about, errors.ErrUnsupported}, "set synchronous_standby_names, or give --allow-async: "+
			"that is right if the newest writes may be lost, and where the disks below PostgreSQL are replicated without its knowledge, as in most managed services")
	case errors.Is(err, postgres.ErrPooler):
		return hint.With(&coded{about, errors.ErrUnsupported}, "give the address of the server itself, or --allow-async if the newest writes may be lost")
	case errors.Is(err, store.ErrNotDatabase):
		return hint.With(about, "") // it says so itself
	case errors.Is(err, postgres.ErrReadOnly):
		return hint.With(about, "make space first if the service that runs PostgreSQL has set it because the disk is nearly full, and set it to off")
	case errors.Is(err, store.ErrReadOnly):
		return hint.With(about, "name the primary, or all servers of the cluster: postgres://USER@HOST1,HOST2/DATABASE")
	case strings.HasSuffix(about.Error(), noTLS):
		return hint.With(about, "set ssl = on in PostgreSQL, or give a URL whose sslmode does not demand TLS")
	case errors.Is(err, store.ErrUnavailable):
		return hint.With(about, "check that PostgreSQL, and no other program, listens at this address, and try again")
	}
	return about
}
