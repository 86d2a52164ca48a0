package request

import (
	"net"
	"strings"
)

// SecondarySuffix ends the account's name on the secondary endpoint.
const SecondarySuffix = "-secondary"

// Address is where a request goes: an account, by host or by the first segment
// of the path, and the rest of the path.
type Address struct {
	Account   string // without SecondarySuffix
	Secondary bool
	HostStyle bool
	Rest      string // decoded, without the slash before it
}

// AddressOf finds the account that host or path names. Only a host such as
// ACCOUNT.table.localhost names one; to any other host, the first segment does.
func AddressOf(host, path string) Address {
	a := Address{Rest: strings.TrimPrefix(path, "/")}
	if a.Account, a.HostStyle = accountOf(host); !a.HostStyle {
		a.Account, a.Rest, _ = strings.Cut(a.Rest, "/")
	}
	a.Account, a.Secondary = strings.CutSuffix(a.Account, SecondarySuffix)
	if a.Secondary && !a.HostStyle {
		// The Python client asks the secondary endpoint by its whole address, and
		// appends the path that it has for the primary.
		if rest, ok := strings.CutPrefix(a.Rest, a.Account+"/"); ok {
			a.Rest = rest
		}
	}
	return a
}

// accountOf returns the account that a host names, with a port or without.
func accountOf(host string) (account string, ok bool) {
	if _, rest, _ := strings.Cut(host, "."); !hasTableLabel(rest) {
		return "", false // whatever of it is the port
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	label, rest, _ := strings.Cut(host, ".")
	if !hasTableLabel(rest) {
		return "", false
	}
	return strings.ToLower(label), true
}

// hasTableLabel reports whether rest, a host's labels after the first, begins
// with the one that tells the Table service from its siblings.
func hasTableLabel(rest string) bool {
	return len(rest) > len("table.") && strings.EqualFold(rest[:len("table.")], "table.")
}
