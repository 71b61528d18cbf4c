package api

import (
	"context"
	"encoding/json"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// Finality says how much an answer can be relied on.
type Finality string

const (
	// Ordered: a Raft majority has the entry. Crash-safe while all voters are
	// honest; a reset may revoke it.
	Ordered Finality = "ordered"
)

// Codes of refusals that say the node cannot serve now. The same request may
// succeed at another node or later; a write may be repeated with the same id.
const (
	CodeNoLeader    = "no_leader"      // the cluster has no Raft leader
	CodeNotLeader   = "not_leader"     // the node that was asked to lead does not
	CodeNotReady    = "not_ready"      // this node is starting or catching up
	CodeTimeout     = "timeout"        // no answer in time: a write may or may not have been ordered
	CodeUnknown     = "unavailable"    // the outcome of a write is not known: it may or may not have been ordered
	CodeUnreachable = "unreachable"    // the node that would answer cannot be reached
	CodeBusy        = "busy"           // too many requests or streams at once
	CodeManyWaits   = "too_many_waits" // too many writes wait at this node
	CodeHalted      = "halted"         // the node has stopped applying after an error of its own
	CodeStopping    = "stopping"       // the node is shutting down
	CodeSlowReader  = "slow_reader"    // a stream's reader fell too far behind
	CodeInternal    = "internal"       // the node's own trouble
)

// Unavailable reports whether a code says that the node cannot serve now.
func Unavailable(code string) bool {
	switch code {
	case CodeNoLeader, CodeNotReady, CodeNotLeader, CodeTimeout, CodeUnknown, CodeUnreachable, CodeManyWaits, CodeHalted, CodeBusy, CodeStopping:
		return true
	}
	return false
}

// Backend is what a node offers its doors. Every method is safe for
// concurrent use and returns when its context ends.
type Backend interface {
	// Submit orders one signed action, given as canonical JSON, and waits for
	// its answer. A repeated id with the same text gets the first answer.
	Submit(ctx context.Context, action []byte) (Answer, error)
	// Query answers one read for an authenticated principal. It is
	// linearizable unless stale. An unknown name is refused with unknown_kind.
	Query(ctx context.Context, name, principal string, params json.RawMessage, stale bool) (json.RawMessage, error)
	// Asks lists what the principal is asked now, by deadline, then subject.
	Asks(ctx context.Context, principal string, stale bool) ([]machine.Ask, error)
	// Kinds lists the kinds of action of all machines.
	Kinds() []machine.Kind
	// Queries lists the queries of all machines.
	Queries() []machine.Query
	// Subscribe opens the event records whose Index is above since.
	Subscribe(ctx context.Context, since uint64) (Stream, error)
	// Key finds a principal's active public key. It refuses with
	// unknown_actor or revoked. It may answer from this node's state.
	Key(ctx context.Context, actor, kid string) (sign.PublicKey, error)
	// Status describes this node and its view of the cluster.
	Status(ctx context.Context) (Status, error)
	// Peers lists the nodes that this node knows, ascending by id.
	Peers(ctx context.Context) ([]Peer, error)
	// Guilt lists the proofs against voters that this node holds, in the order
	// in which they came.
	Guilt(ctx context.Context) ([]Guilt, error)
}

// Answer is the outcome of an accepted action.
type Answer struct {
	Seq      uint64          `json:"seq"`       // entry that holds the action
	StampMS  machine.Stamp   `json:"stamp_ms"`  // replicated time of that entry
	ActionID string          `json:"action_id"` // the action's own id
	Result   json.RawMessage `json:"result"`    // what the machine answered
	Finality Finality        `json:"finality"`
}

// Record is one event of the decision log.
type Record struct {
	Index   uint64          `json:"index"` // leaf number in the decision log; leaves that are not events leave gaps
	Seq     uint64          `json:"seq"`
	StampMS machine.Stamp   `json:"stamp_ms"`
	Type    string          `json:"type"`
	Subject string          `json:"subject"`
	To      []string        `json:"to,omitempty"` // principals concerned; none means everybody
	Data    json.RawMessage `json:"data"`
}

// Concerns reports whether the record is addressed to the principal, by name
// or because it is addressed to everybody.
func (r Record) Concerns(principal string) bool {
	if r.To == nil {
		return true
	}
	for _, id := range r.To {
		if id == principal {
			return true
		}
	}
	return false
}

// Stream hands out records in the order of their Index. It is for one reader.
type Stream interface {
	// Next waits for the next record. It returns the context's error when
	// that ends first, after which the stream is still good, and a
	// [*machine.Refusal] (slow_reader, stopping) when the stream is over.
	Next(ctx context.Context) (Record, error)
	// Close frees the stream; it is safe to call twice.
	Close()
}

// Status is one node's view of itself and the cluster.
type Status struct {
	NodeID             string      `json:"node_id"`
	ClusterID          string      `json:"cluster_id"` // genesis hash, 64 hex digits
	Role               string      `json:"role"`       // leader, follower, candidate, observer, joining, removed
	Leader             string      `json:"leader"`     // node id; empty when there is none
	Term               uint64      `json:"term"`
	Generation         uint64      `json:"generation"`
	Epoch              uint64      `json:"epoch"`
	AppliedIndex       uint64      `json:"applied_index"`
	Voters             []string    `json:"voters"`              // node ids, ascending
	ByzantineTolerance int         `json:"byzantine_tolerance"` // f = ⌊(n−1)/3⌋
	DecisionLog        DecisionLog `json:"decision_log"`
	Ready              bool        `json:"ready"`            // has a leader and is caught up
	Guilty             []string    `json:"guilty,omitempty"` // node ids against which this node holds proof, ascending
	Version            string      `json:"version,omitempty"`
}

// DecisionLog is a head of the decision log.
type DecisionLog struct {
	Size uint64 `json:"size"` // leaves
	Root string `json:"root"` // RFC 6962 root, 64 hex digits
}

// Guilt is a proof against a voter, and who that is.
type Guilt struct {
	NodeID string     `json:"node_id"`
	Proof  pbft.Guilt `json:"proof"` // verifies against the voters of its instance's epoch
}

// Peer is one node as seen from another.
type Peer struct {
	NodeID    string   `json:"node_id"`
	Operator  string   `json:"operator,omitempty"`
	Role      string   `json:"role"` // voter, observer, joining
	Leader    bool     `json:"leader"`
	Self      bool     `json:"self"`
	Connected bool     `json:"connected"`
	Addresses []string `json:"addresses"` // multiaddrs
}
