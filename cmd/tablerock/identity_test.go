package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestNoIdentity checks the exit code and the advice of commands for which Entra ID has no
// token.
func TestNoIdentity(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct{ credentials, want string }{
		{"AzureCLICredential", "AzureCLICredential: executable not found on path"},
		{"nonsense", `invalid AZURE_TOKEN_CREDENTIALS value "nonsense"`},
	} {
		t.Setenv("AZURE_TOKEN_CREDENTIALS", c.credentials)
		for _, args := range [][]string{{"table", "list"}, {"table", "create", "People"}, {"entity", "delete", "People", "p", "r"}} {
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), append(args, "--endpoint", "https://127.0.0.1:1/shop"), nil, &stdout, &stderr)
			text := stderr.String()
			if code != exitUnusable || !strings.HasPrefix(text, "tablerock: https://127.0.0.1:1/shop: no token of Entra ID: ") || !strings.Contains(text, c.want) ||
				!strings.HasSuffix(text, `; run "az login", or give --account-key or --sas`+"\n") || strings.Contains(text, "\t") {
				t.Errorf("%v with %s: exit code %d, %s", args, c.credentials, code, text)
			}
		}
	}
}
