package server

import (
	"context"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
)

func (x *exchange) tableACL() error    { return errNotImplemented }
func (x *exchange) setTableACL() error { return errNotImplemented }

// policies returns the stored access policies of a table.
func (s *Server) policies(ctx context.Context, account, table string) ([]sharedkey.Policy, error) {
	return nil, nil
}
