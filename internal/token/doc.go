// Package token makes and checks the bearer tokens of readers: a compact JWS
// (EdDSA, typ deliberd-token) over the canonical JSON of {cluster, sub, iat,
// exp}, signed by one of the principal's own keys and good for an hour at most.
//
// A token proves who reads, at any node of one cluster. It never authorizes a
// write: actions carry their own signature.
package token
