// Package multipart takes the body of a batch apart into its operations, and
// puts the answer together: MIME parts, each an HTTP request or answer as text,
// and around those that change something a second envelope, the changeset.
//
// What an operation asks for, and whether it may, is not looked at here, except
// that a query stands alone and outside a changeset.
package multipart
