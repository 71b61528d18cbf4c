// Package registry is the machine that knows who may act: agents, humans and
// operators, their Ed25519 keys, and the authority and trust each holds in a
// domain (ACP §6.1). Its kinds are registry.register, registry.rotate,
// registry.revoke, registry.grant and registry.ungrant.
//
// # Who may change what
//
// Operators are named by the genesis; agents and humans are registered by an
// operator, who answers for them from then on. An operator changes only
// principals it answers for, itself included: it grants them authority,
// rotates and revokes their keys. There is no cluster-wide grantor. What
// keeps an operator from flooding rounds with its own agents is the genesis:
// [Limits.MaxPrincipalsPerOperator] bounds how many active agents and humans
// one operator may answer for (electorate_limit). A principal may also rotate
// and revoke its own key, and revoke itself. An operator cannot be revoked,
// only rotate its key: the cluster would lose the one who answers.
//
// # Keys
//
// A principal has at most one active key. Registering and rotating take a
// proof by the new key (see [ProofPayload]) that it is held. A key belongs to
// one principal for ever: it is never taken again, not even by its owner.
// Rotation takes effect with its own entry: from the next action on, the old
// key is refused as revoked.
//
// # Domains and grants
//
// A domain is 1 to 128 characters of [A-Za-z0-9._-], case-sensitive. A grant
// names a pattern: a domain ("risk.credit"), a domain and everything below it
// ("risk.*" covers "risk" and "risk.credit.eu"), or everything ("*"). The
// grant that counts is the one with the longest pattern that covers the
// domain; the exact domain goes before the same domain with ".*".
//
// Authority and trust are exact decimals in [0, 1], kept as they were
// written: as a JSON number, or as a string to keep trailing zeros.
package registry
