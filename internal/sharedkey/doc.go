// Package sharedkey authorizes requests of the Azure Table service. It verifies
// request signatures, shared access signatures (SAS) and bearer tokens, and creates
// the first two for clients.
//
// Authorization has two steps. [Verifier.Verify] authenticates a request and returns
// a [Grant]. [Grant.Allow] reports whether the grant covers an operation, and
// [Grant.Bounds] returns the keys that it covers. A batch is verified once; its
// operations share the grant.
//
// The protocol has weaknesses that a server cannot repair:
//
//   - A signature covers the method, the path and a few headers, but not the body,
//     and stays valid for 15 minutes. An eavesdropper can repeat a request with
//     another body. Use TLS.
//   - A shared access signature signs an absent parameter like an empty one. Its
//     holder can remove an empty epk or erk and so widen the range. Credential
//     therefore never sets an empty one.
//   - The signature of a bearer token is not checked. Anyone can create one, so use
//     OAuth for development only.
//
// A Verifier refuses a wrong account, key or signature with the same error and in the
// same time. The package does not log, and no error contains a key or a signature.
package sharedkey
