package serve

import (
	"io"
	"strings"
	"testing"
)

// TestWeakKeys checks that only AZURITE_ACCOUNTS can have short keys.
func TestWeakKeys(t *testing.T) {
	const weak = "first:a2V5MQ=="
	for _, azurite := range []bool{true, false} {
		c := Config{Accounts: []string{weak}, azuriteAccounts: azurite, Stderr: io.Discard}
		list, err := c.accounts(true)
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
