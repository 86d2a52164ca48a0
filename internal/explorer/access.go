package explorer

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

func (x *exchange) policies() (any, error) {
	a, table, err := x.target(sharedkey.ACL)
	if err != nil {
		return nil, err
	}
	if a.Policies == nil {
		return nil, Refuse(http.StatusNotImplemented, "NotImplemented", "This backend has no access policies.")
	}
	list, err := a.Policies(x.r.Context(), table)
	return map[string]any{"policies": append([]Policy{}, list...)}, err
}

func (x *exchange) setPolicies() (any, error) {
	var in struct {
		Account, Table string
		Policies       []Policy
	}
	if err := x.read(&in); err != nil {
		return nil, err
	}
	a, _, err := x.targetOf(in.Account, in.Table, sharedkey.ACL)
	if err != nil {
		return nil, err
	}
	if a.SetPolicies == nil {
		return nil, Refuse(http.StatusNotImplemented, "NotImplemented", "This backend has no access policies.")
	}
	return struct{}{}, a.SetPolicies(x.r.Context(), in.Table, in.Policies)
}

func (x *exchange) sasFields() (any, error) { return sharedkey.Fields(), nil }

func (x *exchange) makeSAS() (any, error) {
	var in struct {
		Account, Kind, Table string
		Fields               map[string]string
	}
	if err := x.read(&in); err != nil {
		return nil, err
	}
	a, err := x.account(in.Account)
	if err != nil {
		return nil, err
	}
	if a.Credential == nil || x.s.SAS != "" {
		return nil, Refuse(http.StatusForbidden, "NoKey", "This session has no key of the account to sign with.")
	}
	known := sharedkey.Fields()[in.Kind]
	for name := range in.Fields {
		if !slices.ContainsFunc(known, func(f sharedkey.Field) bool { return f.Name == name }) {
			return nil, badInput("There is no field " + name + " in this kind of signature.")
		}
	}
	f := func(name string) string { return strings.TrimSpace(in.Fields[name]) }
	var query string
	if in.Kind == "table" {
		query, err = a.Credential.TableSAS(sharedkey.TableSAS{
			Table: in.Table, Permissions: sharedkey.InOrder(f("sp"), "raud"), Start: f("st"), Expiry: f("se"),
			Identifier: f("si"), IP: f("sip"), Protocol: f("spr"),
			StartPartition: in.Fields["spk"], StartRow: in.Fields["srk"], EndPartition: in.Fields["epk"], EndRow: in.Fields["erk"],
		})
	} else {
		query, err = a.Credential.AccountSAS(sharedkey.AccountSAS{
			ResourceTypes: sharedkey.InOrder(f("srt"), "sco"), Permissions: sharedkey.InOrder(f("sp"), "rwdlacup"),
			Start: f("st"), Expiry: f("se"), IP: f("sip"), Protocol: f("spr"),
		})
	}
	if err != nil {
		return nil, badInput("The signature would not be valid: " + err.Error())
	}
	s := &SAS{Query: query}
	s.Summary, s.Warnings = sharedkey.Describe(query, x.h.o.Now())
	if a.Endpoint != "" {
		s.URL, s.Connection = a.Endpoint+"?"+query, "TableEndpoint="+a.Endpoint+";SharedAccessSignature="+query+";"
		if in.Kind == "table" {
			s.URL = a.Endpoint + "/" + url.PathEscape(in.Table) + "?" + query
		}
	}
	return s, nil
}
