package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/store"
)

// tableACL is GET /T?comp=acl.
func (x *exchange) tableACL() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	meta, err := x.account.store.TableMeta(x.r.Context(), x.target.Table)
	if err != nil {
		return aclProblem(err)
	}
	policies, err := service.DecodePolicies(meta)
	if err != nil {
		return err
	}
	x.head()
	x.buf = service.AppendPolicies(x.buf[:0], policies)
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
	policies, err := service.ParsePolicies(x.body)
	if err != nil {
		return err
	}
	meta := service.EncodePolicies(nil, policies)
	if err := x.account.store.SetTableMeta(x.r.Context(), x.target.Table, meta); err != nil {
		return aclProblem(err)
	}
	x.head()
	return x.sendEmpty(http.StatusNoContent)
}

// aclProblem calls a missing table what these operations call it.
func aclProblem(err error) error {
	if errors.Is(err, store.ErrTableNotFound) {
		return errNotFound
	}
	return err
}

// policies returns the stored access policies of a table. That there is no such
// table is an error of the store.
func (s *Server) policies(ctx context.Context, account, table string) ([]sharedkey.Policy, error) {
	a := s.accounts[account]
	if a == nil {
		return nil, store.ErrTableNotFound
	}
	meta, err := a.store.TableMeta(ctx, table)
	if errors.Is(err, store.ErrInvalid) {
		err = store.ErrTableNotFound // no table can have the name
	}
	if err != nil {
		return nil, err
	}
	stored, err := service.DecodePolicies(meta)
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

// policyTime returns the text of a time in a policy, "" if it has none.
func policyTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(service.TimeLayout)
}
