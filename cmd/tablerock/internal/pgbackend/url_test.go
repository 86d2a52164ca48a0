package pgbackend

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, shown, connection, account string }{
		{"postgres://db1/shop", "postgres://db1/shop", "postgres://db1/shop", ""},
		{"postgresql://ann@db1:5433/shop", "postgres://ann@db1:5433/shop", "postgres://ann@db1:5433/shop", ""},
		{"Postgres://ann:hunter2@db1/shop", "postgres://ann@db1/shop", "postgres://ann:hunter2@db1/shop", ""},
		{"postgres://ann:hunter2%2F%40%3A@db1/shop", "postgres://ann@db1/shop", "postgres://ann:hunter2%2F%40%3A@db1/shop", ""},
		{
			"postgres://ann@db1,db2:5433,db3/shop?target_session_attrs=read-write&password=hunter2", "postgres://ann@db1,db2:5433,db3/shop",
			"postgres://ann@db1,db2:5433,db3/shop?password=hunter2&target_session_attrs=read-write", "",
		},
		{"postgres:///shop?user=ann&host=/run/postgresql", "postgres:///shop?user=ann&host=/run/postgresql", "postgres:///shop?host=/run/postgresql&user=ann", ""},
		{"postgres://?service=shop", "postgres://?service=shop", "postgres://?service=shop", ""},
		{"postgres://ann:hunter2#?@[::1]:5432,db2:5432/shop", "postgres://ann@[::1]:5432,db2:5432/shop", "postgres://ann:hunter2#?@[::1]:5432,db2:5432/shop", ""},
		{
			"postgres://ann@db1/shop?sslmode=verify-full&sslrootcert=/ca.pem&sslpassword=hunter2&search_path=two",
			"postgres://ann@db1/shop?sslmode=verify-full&sslrootcert=/ca.pem&search_path=two",
			"postgres://ann@db1/shop?search_path=two&sslmode=verify-full&sslpassword=hunter2&sslrootcert=/ca.pem", "",
		},
		{"postgres://db1/shop?account=sales&p%61ssword=hunter2", "postgres://db1/shop", "postgres://db1/shop?p%61ssword=hunter2", "sales"},
	} {
		u, err := Parse(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if u.String() != c.shown || u.connection != c.connection || u.Account() != c.account {
			t.Errorf("%s: shown %s, connection %s, account %q, want %s, %s, %q", c.text, u, u.connection, u.Account(), c.shown, c.connection, c.account)
		}
		if u.password != strings.Contains(c.text, "hunter2") {
			t.Errorf("%s: password is %t", c.text, u.password)
		}
	}
}

// TestParseRefused checks that an error of Parse has no part of the text.
func TestParseRefused(t *testing.T) {
	for _, text := range []string{
		"", "shop", "http://db1/shop", "host=db1 password=hunter2", "postgres:hunter2",
		"postgres://ann:hunter2/@db1/shop", "postgres://ann:hun ter2@db1/shop", "postgres://ann:p@hunter2@db1/shop", "postgres://ann:1/hunter2@db1/shop",
		"postgres://db1:hunter2/shop", "postgres://db1/shop?hunter2", "postgres://db1/shop?account=Hunter2", "postgres://db1/shop?account=",
		"postgres://db1/shop?account=hunter2&account=hunter2", "postgres://ann:hunter2@db1/shop\x7f",
	} {
		u, err := Parse(text)
		if err == nil {
			t.Errorf("%q is accepted as %s", text, u)
		} else if strings.Contains(strings.ToLower(err.Error()), "hunter2") || strings.Contains(err.Error(), "ter2") {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
}

func TestSame(t *testing.T) {
	parse := func(text string) *URL {
		u, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	a := parse("postgres://ann@db1/shop?b=1&a=2&account=one")
	if b := parse("postgresql://ann@db1/shop?a=2&account=two&b=1"); !a.Same(b) {
		t.Errorf("%s and %s differ", a.connection, b.connection)
	}
	for _, other := range []string{
		"postgres://bob@db1/shop?a=2&b=1", "postgres://ann@db2/shop?a=2&b=1", "postgres://ann@db1/sales?a=2&b=1", "postgres://ann@db1/shop",
	} {
		if a.Same(parse(other)) {
			t.Errorf("%s is the same as %s", a.connection, other)
		}
	}
}

func TestRedact(t *testing.T) {
	for text, want := range map[string]string{
		`open postgres://ann:hunter2@db1/shop: no such file`:             `open postgres://ann@db1/shop: no such file`,
		`"POSTGRESQL://ann:p@ss:hunter2@db1/shop" is too much`:           `"POSTGRESQL://ann@db1/shop" is too much`,
		`postgres://ann:hunter2"'@db1`:                                   `postgres://ann@db1`,
		`postgres://db1/shop?user=ann&password=hunter2&x=y 2`:            `postgres://db1/shop?user=ann&password=&x=y 2`,
		`postgres:///shop?sslpassword=hunter2`:                           `postgres:///shop?sslpassword=`,
		`shop:KEY@postgres://ann:hunter2@db1/s or postgres://bob:x@db2/`: `shop:KEY@postgres://ann@db1/s or postgres://bob@db2/`,
		`postgres://ann@db1:5432/shop: a:b`:                              `postgres://ann@db1:5432/shop: a:b`,
		`postgres://db1:5432/shop`:                                       `postgres://db1:5432/shop`,
	} {
		if got := Redact(text); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// TestPromisesDocumented compares the promises with the table of the page.
func TestPromisesDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	word := map[bool]string{true: "yes", false: "no"}
	for i, p := range Promises {
		if want := fmt.Sprintf("D%d", i+1); p.Name != want {
			t.Errorf("promise %d is %s, want %s", i, p.Name, want)
		}
		if row := fmt.Sprintf("| %s | %s | %s | %s |\n", p.Name, word[p.Sync], word[p.Async], p.Note); !strings.Contains(string(page), row) {
			t.Errorf("docs/reliability.md has no row %s", row)
		}
	}
	for async, want := range map[bool]string{false: "D1 D2 D3 D4 D5 D7 D13 D14", true: "D2 D4 D13 D14"} {
		if hold, _ := Names(async); hold != want {
			t.Errorf("asynchronous %t: %s hold, want %s", async, hold, want)
		}
	}
}

// TestInstead checks which commands refuse the database of the environment, and that each
// names a tool.
func TestInstead(t *testing.T) {
	for _, c := range []struct {
		path         string
		named, fails bool
		tool         string
	}{
		{"verify", false, true, "pg_amcheck"},
		{"verify", true, true, "pg_amcheck"},
		{"compact", false, true, "VACUUM"},
		{"checkpoint", false, true, "pg_basebackup"},
		{"backup create", false, true, "pg_basebackup"},
		{"backup list", false, false, ""},
		{"backup list", true, true, "pg_basebackup"},
		{"restore", false, false, ""},
		{"restore", true, true, "pg_restore"},
		{"inspect", false, false, ""},
		{"inspect", true, true, "pg_waldump"},
		{"explain", false, true, "EXPLAIN"},
		{"bench", false, false, ""},
		{"bench", true, true, "pgbench"},
		{"verifyx", true, false, ""},
		{"table list", true, false, ""},
		{"serve", true, false, ""},
	} {
		if text := Instead(c.path, c.named); (text != "") != c.fails || !strings.Contains(text, c.tool) {
			t.Errorf("%s, named %t: %q", c.path, c.named, text)
		}
	}
}
