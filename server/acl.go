package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/store"
)

// tableACL is GET /T?comp=acl.
func (x *exchange) tableACL() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	policies, err := tablePolicies(x.r.Context(), x.account.store, x.target.Table)
	if err != nil {
		return x.aclProblem(err)
	}
	x.setHead()
	x.buf = documents.AppendPolicies(x.buf[:0], policies)
	return x.send(http.StatusOK, applicationXML)
}

// setTableACL is PUT /T?comp=acl.
func (x *exchange) setTableACL() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	if err := x.readBody(); err != nil {
		return err
	}
	if err := setTablePolicies(x.r.Context(), x.account.store, x.target.Table, x.body); err != nil {
		return x.aclProblem(err)
	}
	x.setHead()
	return x.sendEmpty(http.StatusNoContent)
}

// versionACLNotFound is the first version in which these operations call a missing table a
// missing resource.
const versionACLNotFound = "2019-02-02"

// aclProblem maps a missing table to the problem of these operations.
func (x *exchange) aclProblem(err error) error {
	if errors.Is(err, store.ErrTableNotFound) && x.version >= versionACLNotFound {
		return problem.ErrNotFound
	}
	return err
}

// policies returns the stored access policies of a table, for sharedkey.Verifier. The error
// is store.ErrTableNotFound if there is no such table.
func (s *accounts) policies(ctx context.Context, account, table string) ([]sharedkey.Policy, error) {
	a := s.byName[account]
	if a == nil {
		return nil, store.ErrTableNotFound
	}
	return signaturePolicies(ctx, a.store, table)
}

// tablePolicies returns the stored access policies of a table.
func tablePolicies(ctx context.Context, s store.Store, table string) ([]documents.Policy, error) {
	meta, err := s.TableMeta(ctx, table)
	if err != nil {
		return nil, err
	}
	return documents.DecodePolicies(meta)
}

// setTablePolicies replaces the access policies of a table by those of a client's
// document. It refuses a document that is not valid with a *documents.Error.
func setTablePolicies(ctx context.Context, s store.Store, table string, doc []byte) error {
	policies, err := documents.ParsePolicies(doc)
	if err != nil {
		return err
	}
	return s.SetTableMeta(ctx, table, documents.EncodePolicies(nil, policies))
}

// signaturePolicies returns the policies of a table as signatures refer to them. The
// error is store.ErrTableNotFound if there is no table of the name, also if the name
// is not valid.
func signaturePolicies(ctx context.Context, s store.Store, table string) ([]sharedkey.Policy, error) {
	stored, err := tablePolicies(ctx, s, table)
	if errors.Is(err, store.ErrInvalid) {
		err = store.ErrTableNotFound
	}
	if err != nil {
		return nil, err
	}
	var policies []sharedkey.Policy
	for _, p := range stored {
		policies = append(policies, sharedkey.Policy{
			ID: p.ID, Start: policyTime(p.Start), Expiry: policyTime(p.Expiry), Permission: p.Permission,
		})
	}
	return policies, nil
}

// policyTime returns the text of a time in a policy, "" if it is not set.
func policyTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(documents.TimeLayout)
}
