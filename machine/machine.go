package machine

import (
	"cmp"
	"encoding/json"
)

// PrincipalKind tells who may act.
type PrincipalKind string

// The kinds of principal.
const (
	Agent    PrincipalKind = "agent"
	Human    PrincipalKind = "human"
	Operator PrincipalKind = "operator"
	Node     PrincipalKind = "node"
)

// Kind describes one kind of action. Doors derive their methods from it.
type Kind struct {
	Name    string          // "acp.submit"
	By      []PrincipalKind // who may send it; the state machine refuses others with not_authorized
	Schema  json.RawMessage // JSON Schema 2020-12 of the body
	Summary string          // one line for help texts
	// Strangers lets a node send it that is not a member yet: cluster.join.
	Strangers bool
}

// Query describes one read. Doors derive their methods from it.
type Query struct {
	Name    string          // "acp.get"
	Schema  json.RawMessage // JSON Schema 2020-12 of the parameters
	Summary string
	// Run answers from committed state. principal is the authenticated
	// reader. It errs with a [*Refusal] on bad parameters.
	Run func(tx Tx, ctx Ctx, principal string, params json.RawMessage) (any, error)
}

// Tx is one machine's own keys. A returned or passed slice belongs to the Tx
// until the method returns: copy before keeping or changing it.
type Tx interface {
	// Get returns nil without error when the key is absent.
	Get(k []byte) ([]byte, error)
	Put(k, v []byte) error
	Delete(k []byte) error
	// Range visits keys in [from, to) in ascending byte order until f returns
	// false or errs. A nil to means "to the end". f must not write.
	Range(from, to []byte, f func(k, v []byte) (bool, error)) error
}

// Machine is one protocol.
type Machine interface {
	// Name is the first word of its kinds and the prefix of its keys.
	Name() string
	Kinds() []Kind
	Queries() []Query
	// Apply decides one verified action. The answer is encoded as canonical
	// JSON and kept under the action's id. A [*Refusal] drops all writes and
	// events; any other error is local corruption and stops the node.
	Apply(tx Tx, ctx Ctx, v Verified) (any, []Event, error)
	// Due resolves everything that time alone resolves at ctx.Now.
	Due(tx Tx, ctx Ctx) ([]Event, error)
	// Next is the earliest stamp at which Due would do something; false when
	// nothing is scheduled. The leader proposes a tick then.
	Next(tx Tx) (Stamp, bool, error)
	// React hears another machine's event in the same transaction.
	React(tx Tx, ctx Ctx, e Event) ([]Event, error)
	// Asks lists what this principal is asked now, ordered by deadline, then subject.
	Asks(tx Tx, ctx Ctx, principal string) ([]Ask, error)
}

// Event is something that happened, part of the decision log. Data is encoded
// as canonical JSON: codes and values, never library texts.
type Event struct {
	Type    string   // "acp.resolved"
	Subject string   // id of the proposal, round, agent, … it is about
	To      []string // principals concerned, for "for=me" streams; nil: everybody
	Data    any
}

// Ask is one thing a principal is asked to do now.
type Ask struct {
	Ask      string          `json:"ask"`     // position, confirm, vote, response, review
	Kind     string          `json:"kind"`    // the action kind that answers it
	Subject  string          `json:"subject"` // round or proposal id
	Title    string          `json:"title"`
	Deadline Stamp           `json:"deadline_ms,omitempty"` // 0: none
	Schema   json.RawMessage `json:"body_schema"`
	Context  any             `json:"context,omitempty"` // what one needs to know to answer
}

// CompareDeadlines orders stamps, with 0, no deadline, last.
func CompareDeadlines(a, b Stamp) int { return cmp.Compare(uint64(a-1), uint64(b-1)) } // 0 wraps to the end

// Ctx is what a machine may know besides its keys.
type Ctx struct {
	Genesis    string // genesis hash, 64 hex digits: the cluster's id
	Generation uint64 // raft generation, raised by a reset
	Epoch      uint64 // voter epoch
	Seq        uint64 // number of the entry being applied, from 1; for queries, of the last applied
	Now        Stamp  // the entry's stamp
	World      World
}

// World is the read-only view of what other machines answer for.
type World interface {
	// Principal looks up an agent, human, operator or node; ok is false when unknown.
	Principal(id string) (p Principal, ok bool, err error)
	// Grant is what the principal holds in a domain: the grant with the
	// longest pattern that covers it ("risk.*" covers "risk.credit" and "risk").
	Grant(principal, domain string) (g Grant, ok bool, err error)
	// Holders lists the active principals that hold a grant covering domain, ascending.
	Holders(domain string) ([]string, error)
	// Committee is the voters of an epoch; ok is false for one that has not begun.
	Committee(epoch uint64) (c Committee, ok bool, err error)
	// Checkpoint is the decision log's head at the end of entry seq; ok is
	// false unless that entry is applied completely.
	Checkpoint(seq uint64) (c Checkpoint, ok bool, err error)
}

// Principal is somebody known to the registry, or a node known to membership.
type Principal struct {
	ID       string        `json:"id"`
	Kind     PrincipalKind `json:"kind"`
	Operator string        `json:"operator"` // who answers for it; its own id for an operator
	Name     string        `json:"name,omitempty"`
	Active   bool          `json:"active"` // false once revoked or removed
}

// Grant is authority and trust in the domains that Pattern covers, as exact
// decimals in [0, 1] written as they were granted (ACP §6.1).
type Grant struct {
	Principal string `json:"principal"`
	Pattern   string `json:"pattern"`
	Authority string `json:"authority"`
	Trust     string `json:"trust"`
}

// Checkpoint is a head of the decision log (RFC 6962 tree) at the end of an entry.
type Checkpoint struct {
	Seq  uint64   `json:"seq"`
	Size uint64   `json:"size"` // leaves
	Root [32]byte `json:"-"`
}

// Committee is the voters of one epoch.
type Committee struct {
	Epoch   uint64
	Members []Member // ascending by Node
}

// Member is one voter's place in a committee.
type Member struct {
	Node string   // peer id
	Key  [32]byte // Ed25519 public key that signs its PBFT frames in this epoch
}

// N is the number of voters.
func (c Committee) N() int { return len(c.Members) }
