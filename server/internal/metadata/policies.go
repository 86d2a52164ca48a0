package metadata

import (
	"context"
	"errors"
	"time"

	"github.com/tablerock-db/tablerock/internal/sharedkey"
	"github.com/tablerock-db/tablerock/server/internal/service"
	"github.com/tablerock-db/tablerock/store"
)

// Policies returns the stored access policies of a table.
func Policies(ctx context.Context, s store.Store, table string) ([]service.Policy, error) {
	meta, err := s.TableMeta(ctx, table)
	if err != nil {
		return nil, err
	}
	return service.DecodePolicies(meta)
}

// SetPolicies gives a table those of a client's document in place of all that it
// has. A document that is none is refused with a *service.Error.
func SetPolicies(ctx context.Context, s store.Store, table string, doc []byte) error {
	policies, err := service.ParsePolicies(doc)
	if err != nil {
		return err
	}
	return s.SetTableMeta(ctx, table, service.EncodePolicies(nil, policies))
}

// SignaturePolicies returns the policies of a table as signatures refer to them. If
// no table has the name, or can have it, the error is store.ErrTableNotFound.
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
			ID: p.ID, Start: timeText(p.Start), Expiry: timeText(p.Expiry), Permission: p.Permission,
		})
	}
	return policies, nil
}

// timeText returns the text of a time in a policy, "" if it has none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(service.TimeLayout)
}
