package pgbackend_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/hint"
	"github.com/tablerock-db/tablerock/cmd/tablerock/internal/pgbackend"
	"github.com/tablerock-db/tablerock/store"
	"github.com/tablerock-db/tablerock/store/postgres"
	"github.com/tablerock-db/tablerock/store/postgres/pgtest"
)

// TestConnectionParameters checks that an error about a parameter of a URL names what is wrong and the next step.
func TestConnectionParameters(t *testing.T) {
	async := postgres.Options{AllowAsync: true}
	database := pgtest.Shared(t).NewDatabase(t)
	if err := postgres.Init(t.Context(), database, &async); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		parameters string
		want       error
		texts      []string
	}{
		{"sslmode=bogus", errors.ErrUnsupported, []string{"sslmode is invalid"}},
		{"sslmode=verify-full&sslrootcert=/none/ca.pem", errors.ErrUnsupported, []string{"/none/ca.pem"}},
		{"servicefile=/none/services&service=shop&password=hunter2", errors.ErrUnsupported, []string{"/none/services"}},
		{"target_session_attrs=bogus&password=hunter2", errors.ErrUnsupported, []string{"target_session_attrs"}},
		{"nothing=1", errors.ErrUnsupported, []string{`"nothing"`, "remove it"}},
		{"statement_timeout=soon", errors.ErrUnsupported, []string{`"statement_timeout"`, "correct this parameter"}},
		{"default_transaction_read_only=on", store.ErrReadOnly, []string{"default_transaction_read_only is on", "set it to off"}},
		{"dbname=none", fs.ErrNotExist, []string{`"none"`, "createdb"}},
		{"sslmode=require", nil, []string{"refused TLS", "ssl = on", "sslmode"}},
	} {
		u := parse(t, database+"?"+c.parameters)
		s, err := pgbackend.Open(t.Context(), u, "shop", &async)
		if err == nil {
			t.Errorf("%s is accepted", c.parameters)
			_ = s.Close()
			continue
		}
		if c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want the exit code of %v", c.parameters, err, c.want)
		}
		message := err.Error() + "; " + hint.Next(err)
		for _, text := range c.texts {
			if !strings.Contains(message, text) {
				t.Errorf("%s: %s, want %q", c.parameters, message, text)
			}
		}
		if c.parameters != "sslmode=require" && strings.Contains(message, "TLS connection") {
			t.Errorf("%s: the message blames TLS, without which the server was tried too: %s", c.parameters, message)
		}
		if strings.Contains(message, "hunter2") || strings.Contains(message, "malformed") {
			t.Errorf("%s: the message has the password or blames the whole URL: %s", c.parameters, message)
		}
	}
}
