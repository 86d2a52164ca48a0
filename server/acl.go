package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/server/internal/metadata"
	"github.com/tablerock-db/tablerock/server/internal/problem"
	"github.com/tablerock-db/tablerock/store"
)

// tableACL is GET /T?comp=acl.
func (x *exchange) tableACL() error {
	if err := checkTable(x.target.Table); err != nil {
		return err
	}
	policies, err := metadata.Policies(x.r.Context(), x.account.store, x.target.Table)
	if err != nil {
		return x.aclProblem(err)
	}
	x.setHead()
	x.out.Buf = documents.AppendPolicies(x.out.Buf[:0], policies)
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
	if err := metadata.SetPolicies(x.r.Context(), x.account.store, x.target.Table, x.body.Bytes); err != nil {
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
	return metadata.SignaturePolicies(ctx, a.store, table)
}
