package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/metadata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/store"
)

// tableACL is GET /T?comp=acl.
func (x *exchange) tableACL() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	policies, err := metadata.Policies(x.r.Context(), x.account.store, x.target.Table)
	if err != nil {
		return aclProblem(err)
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
	if err := metadata.SetPolicies(x.r.Context(), x.account.store, x.target.Table, x.body); err != nil {
		return aclProblem(err)
	}
	x.head()
	return x.sendEmpty(http.StatusNoContent)
}

// aclProblem calls a missing table what these operations call it.
func aclProblem(err error) error {
	if errors.Is(err, store.ErrTableNotFound) {
		return problem.ErrNotFound
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
	return metadata.SignaturePolicies(ctx, a.store, table)
}
