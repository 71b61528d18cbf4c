package fsm

import (
	"encoding/binary"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Directory answers who the principals are: package registry's keys, behind a
// view of the registry machine's own keys.
type Directory interface {
	Lookup(tx machine.Tx, id string) (machine.Principal, bool, error)
	// Key is the key that kid names if the actor holds it now; active is false
	// for one that was rotated or revoked.
	Key(tx machine.Tx, actor, kid string) (key sign.PublicKey, active, ok bool, err error)
	Grant(tx machine.Tx, principal, domain string) (machine.Grant, bool, error)
	Holders(tx machine.Tx, domain string) ([]string, error)
}

// Membership answers who the nodes are, behind a view of the membership
// machine's own keys.
type Membership interface {
	Lookup(tx machine.Tx, node string) (machine.Principal, bool, error)
	// NodeKey is the identity key that a peer id embeds; ok is false for an
	// id that is no Ed25519 peer id.
	NodeKey(node string) (key sign.PublicKey, ok bool)
	Epoch(tx machine.Tx) (uint64, error)
	Committee(tx machine.Tx, epoch uint64) (machine.Committee, bool, error)
}

// world is the machines' view of each other inside one transaction.
type world struct {
	f  *FSM
	tx machine.Tx
}

func (w world) registry() machine.Tx   { return w.f.scope(w.tx, w.f.registry) }
func (w world) membership() machine.Tx { return w.f.scope(w.tx, w.f.members) }

func (w world) Principal(id string) (machine.Principal, bool, error) {
	p, ok, err := w.f.directory.Lookup(w.registry(), id)
	if err != nil || ok {
		return p, ok, err
	}
	return w.f.membership.Lookup(w.membership(), id)
}

func (w world) Grant(principal, domain string) (machine.Grant, bool, error) {
	return w.f.directory.Grant(w.registry(), principal, domain)
}

func (w world) Holders(domain string) ([]string, error) {
	return w.f.directory.Holders(w.registry(), domain)
}

func (w world) Committee(epoch uint64) (machine.Committee, bool, error) {
	return w.f.membership.Committee(w.membership(), epoch)
}

func (w world) Checkpoint(seq uint64) (machine.Checkpoint, bool, error) {
	return CheckpointAt(w.tx, seq)
}

// CheckpointAt is the decision log's head at the end of entry seq.
func CheckpointAt(tx machine.Tx, seq uint64) (machine.Checkpoint, bool, error) {
	raw, err := tx.Get(seqKey(nsCheckpoint, seq))
	if err != nil || len(raw) != 40 {
		return machine.Checkpoint{}, false, err
	}
	return machine.Checkpoint{Seq: seq, Size: binary.BigEndian.Uint64(raw), Root: [32]byte(raw[8:])}, true, nil
}

// key finds the key an action claims. strangers may be nodes that are not
// members yet: their key is inside their peer id.
func (w world) key(actor, kid string) (key sign.PublicKey, refusal *machine.Refusal, err error) {
	key, active, ok, err := w.f.directory.Key(w.registry(), actor, kid)
	if err != nil {
		return sign.PublicKey{}, nil, err
	}
	if ok && !active {
		return key, machine.Refuse(machine.CodeRevoked, "sign with the actor's current key", "key %s of %s is revoked or was rotated away", kid, actor), nil
	}
	if ok {
		return key, nil, nil
	}
	if node, ok := w.f.membership.NodeKey(actor); ok {
		if node.KID() != kid {
			return node, machine.Refuse(machine.CodeBadSignature, "sign with the node's identity key", "kid is not the identity key of node %s", actor), nil
		}
		return node, nil, nil
	}
	if _, known, err := w.f.directory.Lookup(w.registry(), actor); err != nil || known {
		return sign.PublicKey{}, machine.Refuse(machine.CodeBadSignature, "sign with a key registered for the actor", "%s has no key %s", actor, kid), err
	}
	return sign.PublicKey{}, machine.Refuse(machine.CodeUnknownActor, "ask an operator to register it", "%s is not registered", actor), nil
}

// Key finds the key that kid names for an actor in committed state. It errs
// with a [*machine.Refusal]: unknown_actor, revoked, bad_signature.
func (f *FSM) Key(tx machine.Tx, actor, kid string) (sign.PublicKey, error) {
	key, refusal, err := world{f, tx}.key(actor, kid)
	if err == nil && refusal != nil {
		err = refusal
	}
	return key, err
}
