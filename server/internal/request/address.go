package request

import (
	"net"
	"strings"
)

// SecondarySuffix is the suffix of the account's name on the secondary endpoint.
const SecondarySuffix = "-secondary"

// Address is the account of a request and the rest of its path. The account is in the host
// or is the first segment of the path.
type Address struct {
	Account   string // without SecondarySuffix
	Secondary bool
	HostStyle bool   // the account is in the host
	Rest      string // decoded, without the leading slash
}

// AddressOf finds the account in a host such as ACCOUNT.table.localhost. With any other
// host, also a name of Kubernetes, it is the first segment of path.
func AddressOf(host, path string) Address {
	a := Address{Rest: strings.TrimPrefix(path, "/")}
	if a.Account, a.HostStyle = accountOf(host); !a.HostStyle {
		a.Account, a.Rest, _ = strings.Cut(a.Rest, "/")
		if a.Rest == "/$batch" { // the Ruby client sends batches to /ACCOUNT//$batch
			a.Rest = "$batch"
		}
	}
	a.Account, a.Secondary = strings.CutSuffix(a.Account, SecondarySuffix)
	if a.Secondary && !a.HostStyle {
		// The Python client appends the whole path of the primary endpoint to the address
		// of the secondary endpoint.
		if rest, ok := strings.CutPrefix(a.Rest, a.Account+"/"); ok {
			a.Rest = rest
		}
	}
	return a
}

// accountOf returns the account in a host, which may have a port.
func accountOf(host string) (account string, ok bool) {
	if _, rest, _ := strings.Cut(host, "."); !hasTableLabel(rest) {
		return "", false // with or without a port
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	label, rest, _ := strings.Cut(host, ".")
	if !hasTableLabel(rest) || isClusterName(rest) {
		return "", false
	}
	return strings.ToLower(label), true
}

// hasTableLabel reports whether rest, a host's labels after the first, begins with the
// label of the Table service.
func hasTableLabel(rest string) bool {
	return len(rest) > len("table.") && strings.EqualFold(rest[:len("table.")], "table.")
}

// isClusterName reports whether a host is a name of Kubernetes whose second label is "table",
// where rest has its labels after the first: that of a service, SERVICE.NAMESPACE.svc, or of a
// pod, POD.SERVICE.NAMESPACE.svc, with the domain of the cluster or without.
func isClusterName(rest string) bool {
	_, rest, _ = strings.Cut(rest, ".")
	third, rest, _ := strings.Cut(rest, ".")
	fourth, _, _ := strings.Cut(rest, ".")
	return strings.EqualFold(third, "svc") || strings.EqualFold(fourth, "svc")
}
