// Package sharedkey decides who may do what: it verifies the signatures of
// requests, shared access signatures and bearer tokens as the Azure Table
// service defines them, and makes the first two as a client does.
//
// A request is judged in two steps. [Verifier.Verify] finds out by whom it was
// sent and returns a [Grant]; [Grant.Allow] says whether the grant covers an
// operation, and [Grant.Bounds] which keys it reaches. A batch is verified once,
// and each of its operations asks the same grant.
//
// What the protocol leaves open, a server cannot mend:
//
//   - A signature covers the verb, the path and few headers, never the body, and
//     stays valid for 15 minutes. Who sees a request can repeat it and change its
//     body; TLS is the defence.
//   - A shared access signature signs an absent parameter as an empty one. Its
//     holder can take an empty epk or erk away and widen the range, so the makers of
//     this package never set one.
//   - The signature of a bearer token is not checked. Anybody can write one, so
//     OAuth is for development alone.
//
// What a Verifier refuses for a wrong account, key or signature looks the same
// and costs the same. Nothing here logs, and no error holds a key or a signature.
package sharedkey
