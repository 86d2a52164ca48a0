package remote

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Endpoint is the address of an account and how to sign in. Without Key, SAS and Entra,
// requests are not signed.
type Endpoint struct {
	// URL is that of the account's tables, https://ACCOUNT.table.core.windows.net or
	// http://HOST:PORT/ACCOUNT, without a query.
	URL     string
	Account string // the name of the account; only Key needs it
	Key     string // a key of the account, in base64
	SAS     string // a shared access signature, the query of a URL
	Entra   bool   // sign in with Microsoft Entra ID; needs https
}

// The account that emulators have, with its published key.
const (
	developmentAccount = "devstoreaccount1"
	developmentKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
	developmentURL     = "http://127.0.0.1:10002/" + developmentAccount
)

// String returns the URL, which has no secret.
func (e Endpoint) String() string { return e.URL }

// ParseURL returns the endpoint of a URL. A query is its shared access signature. The
// development account on this machine gets its published key. No error contains a secret.
func ParseURL(text string) (Endpoint, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return Endpoint{}, errors.New("an endpoint is a URL such as https://ACCOUNT.table.core.windows.net or http://127.0.0.1:10002/ACCOUNT")
	}
	if u.User != nil || u.Fragment != "" {
		return Endpoint{}, errors.New("the URL of an endpoint has neither a user nor a fragment")
	}
	e := Endpoint{SAS: u.RawQuery}
	first, rest, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if rest != "" {
		return Endpoint{}, errors.New("the path of an endpoint is the name of an account; give tables as arguments")
	}
	if e.Account = first; first == "" {
		label, domain, _ := strings.Cut(u.Hostname(), ".")
		if domain == "" || net.ParseIP(u.Hostname()) != nil {
			return Endpoint{}, errors.New("the URL of an endpoint names no account: http://127.0.0.1:10002/ACCOUNT")
		}
		e.Account = strings.TrimSuffix(label, "-secondary")
	}
	if e.SAS == "" && e.Account == developmentAccount && isLoopback(u.Hostname()) {
		e.Key = developmentKey
	}
	u.RawQuery = ""
	e.URL = strings.TrimSuffix(u.String(), "/")
	return e, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}

// ParseConnectionString returns the endpoint of a connection string, as the portal and
// emulators print it. Names are compared without regard to case. No error contains a
// secret.
func ParseConnectionString(text string) (Endpoint, error) {
	fields, err := connectionFields(text)
	if err != nil {
		return Endpoint{}, err
	}
	if strings.EqualFold(fields["usedevelopmentstorage"], "true") {
		return developmentEndpoint(fields["developmentstorageproxyuri"])
	}
	account, address := fields["accountname"], fields["tableendpoint"]
	if address == "" {
		if account == "" {
			return Endpoint{}, errors.New("the connection string has neither TableEndpoint nor AccountName")
		}
		scheme, suffix := fields["defaultendpointsprotocol"], fields["endpointsuffix"]
		if scheme == "" {
			scheme = "https"
		}
		if suffix == "" {
			suffix = "core.windows.net"
		}
		address = scheme + "://" + account + ".table." + suffix
	}
	e, err := ParseURL(address)
	if err != nil {
		return e, fmt.Errorf("the TableEndpoint of the connection string: %w", err)
	}
	if account != "" {
		e.Account = account
	}
	switch key, sas := fields["accountkey"], strings.TrimPrefix(fields["sharedaccesssignature"], "?"); {
	case key != "":
		e.Key, e.SAS = key, ""
	case sas != "":
		e.Key, e.SAS = "", sas
	case e.Key == "" && e.SAS == "":
		return e, errors.New("the connection string has neither AccountKey nor SharedAccessSignature")
	}
	return e, nil
}

// connectionFields splits a connection string at semicolons. The names are in lower case.
func connectionFields(text string) (map[string]string, error) {
	fields := map[string]string{}
	for i, field := range strings.Split(text, ";") {
		if strings.TrimSpace(field) == "" {
			continue
		}
		name, value, ok := strings.Cut(field, "=")
		if !ok {
			return nil, fmt.Errorf("field %d of the connection string is not NAME=VALUE", i+1)
		}
		fields[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
	}
	if len(fields) == 0 {
		return nil, errors.New("the connection string is empty")
	}
	return fields, nil
}

// developmentEndpoint returns the endpoint of the emulator, at another host if proxy is its
// URL.
func developmentEndpoint(proxy string) (Endpoint, error) {
	address := developmentURL
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil || u.Hostname() == "" || u.Scheme == "" {
			return Endpoint{}, errors.New("the DevelopmentStorageProxyUri of the connection string is not a URL such as http://HOST")
		}
		address = u.Scheme + "://" + net.JoinHostPort(u.Hostname(), "10002") + "/" + developmentAccount
	}
	e, err := ParseURL(address)
	e.Key = developmentKey
	return e, err
}
