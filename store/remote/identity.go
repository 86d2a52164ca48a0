package remote

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

// IdentityError means that Entra ID gave no token, so that nothing was sent. errors.Is finds
// fs.ErrPermission.
type IdentityError struct{ reason string }

// Error returns the reasons of all credentials in one line.
func (e *IdentityError) Error() string { return "no token of Entra ID: " + e.reason }

// Unwrap returns fs.ErrPermission.
func (e *IdentityError) Unwrap() error { return fs.ErrPermission }

// NonRetriable tells the SDK not to repeat the request.
func (e *IdentityError) NonRetriable() {}

// identityError returns the IdentityError of err, an error of azidentity, which has lines.
func identityError(err error) error {
	return &IdentityError{strings.Join(strings.Fields(err.Error()), " ")}
}

// identity is the default credential of Entra ID, with errors of this package.
type identity struct{ azcore.TokenCredential }

func newIdentity() (azcore.TokenCredential, error) {
	c, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, identityError(err)
	}
	return identity{c}, nil
}

// GetToken returns a token, an IdentityError, or the error of ctx.
func (i identity) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := i.TokenCredential.GetToken(ctx, o)
	if err == nil || errors.Is(ctx.Err(), context.Canceled) {
		return token, err
	}
	return token, identityError(err)
}
