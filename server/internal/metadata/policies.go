package metadata

import (
	"context"
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/documents"
	"github.com/tablerock-db/tablerock/store"
)

// Policies returns the stored access policies of a table.
func Policies(ctx context.Context, s store.Store, table string) ([]documents.Policy, error) {
	meta, err := s.TableMeta(ctx, table)
	if err != nil {
		return nil, err
	}
	return documents.DecodePolicies(meta)
}

// SetPolicies replaces the access policies of a table by those of a client's
// document. It refuses a document that is not valid with a *documents.Error.
func SetPolicies(ctx context.Context, s store.Store, table string, doc []byte) error {
	policies, err := documents.ParsePolicies(doc)
	if err != nil {
		return err
	}
	return s.SetTableMeta(ctx, table, documents.EncodePolicies(nil, policies))
}

// SignaturePolicies returns the policies of a table as signatures refer to them. The
// error is store.ErrTableNotFound if there is no table of the name, also if the name
// is not valid.
func SignaturePolicies(ctx context.Context, s store.Store, table string) ([]sharedkey.Policy, error) {
	stored, err := Policies(ctx, s, table)
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
