package serve

import (
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

// TestKeyCommand checks the command that creates a key, in the error of a bad key and in
// the page: openssl breaks lines after 64 characters of base64, and an accounts file has
// one account on a line.
func TestKeyCommand(t *testing.T) {
	c := Config{Accounts: []string{"mine:c2VjcmV0"}, Stderr: io.Discard}
	_, err := c.accounts(t.Context(), false)
	if err == nil {
		t.Fatal("a short key is accepted")
	}
	page, pageErr := os.ReadFile("../../../../docs/serve.md")
	if pageErr != nil {
		t.Fatal(pageErr)
	}
	for name, text := range map[string]string{"the error": err.Error(), "docs/serve.md": string(page)} {
		found := regexp.MustCompile(`openssl rand -base64 (\d+)`).FindAllStringSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s names no command that creates a key: %s", name, text)
		}
		for _, m := range found {
			bytes, err := strconv.Atoi(m[1])
			if err != nil || bytes < sharedkey.SafeKeyBytes || bytes > 48 {
				t.Errorf("%s has %q; want %d to 48 bytes, which are one line", name, m[0], sharedkey.SafeKeyBytes)
			}
		}
	}
}

// TestWeakKeys checks that only AZURITE_ACCOUNTS can have short keys.
func TestWeakKeys(t *testing.T) {
	const weak = "first:a2V5MQ=="
	for _, azurite := range []bool{true, false} {
		c := Config{Accounts: []string{weak}, azuriteAccounts: azurite, Stderr: io.Discard}
		list, err := c.accounts(t.Context(), true)
		if azurite && (err != nil || len(list) != 1 || !list[0].weak) {
			t.Errorf("a weak key of AZURITE_ACCOUNTS: %v, %v", list, err)
		}
		if !azurite && (err == nil || !strings.Contains(err.Error(), "at least 32")) {
			t.Errorf("a weak key of --account: %v", err)
		}
		if err != nil && strings.Contains(err.Error(), "a2V5MQ") {
			t.Errorf("%v shows the key", err)
		}
	}
}

// TestDevelopmentAccountMakesNoDirectory checks that the development account is not served from
// a directory beside accounts that are all in PostgreSQL, unless a flag asks for it.
func TestDevelopmentAccountMakesNoDirectory(t *testing.T) {
	key := strings.Repeat("a2V5", 16)
	for _, test := range []struct {
		name string
		c    Config
		want string
	}{
		{"all with a URL", Config{Accounts: []string{"shop:" + key + "@postgres://db1/shop", "mail:" + key + "@postgres://db2/mail"}}, "shop mail"},
		{"one without a URL", Config{Accounts: []string{"shop:" + key + "@postgres://db1/shop", "mail:" + key}}, "devstoreaccount1 shop mail"},
		{"asked for", Config{Accounts: []string{"shop:" + key + "@postgres://db1/shop"}, DevelopmentKey: true}, "devstoreaccount1 shop"},
		{"no accounts", Config{}, "devstoreaccount1"},
	} {
		test.c.Stderr = io.Discard
		list, err := test.c.accounts(t.Context(), false)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		var names []string
		for _, a := range list {
			names = append(names, a.name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%s: serve has the accounts %s, want %s", test.name, got, test.want)
		}
	}
}
