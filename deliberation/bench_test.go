package deliberation_test

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/pbft/quorum"
)

// obj is a JSON object.
type obj = map[string]any

// rig is a bench with agents ann, bob, cid, dan (domain "risk"), a human hal
// with a grant and a human zoe without, operator op and nodes n1 … n4.
type rig struct {
	*machinetest.Bench
	t     testing.TB
	votes []ed25519.PrivateKey
}

var agents = []string{"ann", "bob", "cid", "dan"}

func newRig(t testing.TB) *rig {
	r := &rig{Bench: machinetest.New(t, deliberation.New()), t: t}
	r.Add(machine.Agent, agents...)
	r.Add(machine.Agent, "eve") // no grant
	r.Add(machine.Human, "hal", "zoe")
	r.Add(machine.Operator, "op")
	r.Add(machine.Node, "n1", "n2", "n3", "n4")
	for _, a := range agents {
		r.Grant(a, "risk", "1", "1")
	}
	committee := machine.Committee{Epoch: 1}
	for i := range 4 {
		seed := canon.Hash(fmt.Appendf(nil, "voter %d", i))
		key := ed25519.NewKeyFromSeed(seed[:])
		r.votes = append(r.votes, key)
		committee.Members = append(committee.Members, machine.Member{Node: fmt.Sprintf("n%d", i+1), Key: [32]byte(key.Public().(ed25519.PublicKey))})
	}
	r.World.Committees[1] = committee
	return r
}

// answer is what an action answered.
func (r *rig) answer(raw json.RawMessage) deliberation.Answer {
	r.t.Helper()
	var a deliberation.Answer
	if err := json.Unmarshal(raw, &a); err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *rig) do(actor, verb string, body obj) deliberation.Answer {
	r.t.Helper()
	return r.answer(r.Must(actor, "deliberatic."+verb, body))
}

func (r *rig) refused(code, actor, verb string, body obj) {
	r.t.Helper()
	r.Refused(code, actor, "deliberatic."+verb, body)
}

// open opens a round in "risk" with 1 s windows; more overrides.
func (r *rig) open(more obj) string {
	r.t.Helper()
	body := obj{"title": "Lend?", "domain": "risk", "windows": obj{"collect_ms": 1000, "confirm_ms": 1000, "evidence_ms": 1000, "review_ms": 1000}}
	for k, v := range more {
		if v == nil {
			delete(body, k)
		} else {
			body[k] = v
		}
	}
	return r.do("ann", "open", body).Round
}

func evidence(value, width float64) []obj {
	return []obj{{"type": "performance", "value": value, "confidence": width, "timestamp": "2026-01-15T00:00:00Z"}}
}

// position states one with a single item of certain evidence of this value.
func (r *rig) position(actor, round string, answer any, value float64) string {
	r.t.Helper()
	return r.do(actor, "position", obj{"round": round, "answer": answer, "text": "because", "evidence": evidence(value, 0), "probability": 0.9}).Argument
}

func (r *rig) done(round string, actors ...string) deliberation.Answer {
	r.t.Helper()
	var a deliberation.Answer
	for _, id := range actors {
		a = r.do(id, "done", obj{"round": round})
	}
	return a
}

func (r *rig) confirm(actor, round, winner string, accept bool) deliberation.Answer {
	r.t.Helper()
	return r.do(actor, "confirm", obj{"round": round, "winner": winner, "accept": accept})
}

func (r *rig) view(round string) *deliberation.View {
	r.t.Helper()
	v := &deliberation.View{}
	if err := r.Query("deliberatic.get", "ann", obj{"round": round}, v); err != nil {
		r.t.Fatal(err)
	}
	return v
}

func (r *rig) phase(round string, want deliberation.Phase) {
	r.t.Helper()
	if got := r.view(round).State.Phase; got != want {
		r.t.Fatalf("round is in phase %s, want %s", got, want)
	}
}

// events lists the types of the events so far, without "deliberatic.".
func (r *rig) events() []string {
	var out []string
	for _, e := range r.Events {
		out = append(out, e.Type[len("deliberatic."):])
	}
	return out
}

// complete gives the entry of a freeze its checkpoint.
func (r *rig) complete(seq uint64) machine.Checkpoint {
	c := machine.Checkpoint{Seq: seq, Size: seq * 3, Root: canon.Hash(fmt.Appendf(nil, "head %d", seq))}
	r.World.Checkpoints[seq] = c
	return c
}

// frozen is the round's entry in the list of frozen rounds.
func (r *rig) frozen(round string) deliberation.FrozenRound {
	r.t.Helper()
	list, err := deliberation.Frozen(r.Tx)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, f := range list {
		if f.Round == round {
			return f
		}
	}
	r.t.Fatalf("round %s is not frozen", round)
	return deliberation.FrozenRound{}
}

// certificate has signers sign the digest of a frozen round in view 0.
func (r *rig) certificate(f deliberation.FrozenRound, at machine.Checkpoint, signers ...int) pbft.Certificate {
	instance := deliberation.Instance(machinetest.Genesis, f)
	digest := deliberation.CertDigest(machinetest.Genesis, f.Generation, f.Epoch, f.Round, f.OutcomeHash, at)
	cert := pbft.Certificate{Instance: instance, Digest: digest}
	vote := pbft.Vote{Key: instance.Key(), Phase: pbft.Commit, Digest: digest}
	for _, i := range signers {
		frame := pbft.Sign(instance.Domain(), i, []pbft.Vote{vote}, r.votes[i]).Encode()
		proof := pbft.Proof{Signer: i, Hashes: []pbft.Digest{vote.Hash()}}
		copy(proof.Signature[:], frame[len(frame)-64:])
		cert.Votes = append(cert.Votes, proof)
	}
	return cert
}

// certify completes the freeze's entry and hands in a certificate of a quorum.
func (r *rig) certify(round string) deliberation.Answer {
	r.t.Helper()
	f := r.frozen(round)
	at := r.complete(f.Seq)
	signers := []int{0, 1, 2, 3}[:quorum.Q(4)]
	return r.do("n1", "certify", obj{"round": round, "certificate": r.certificate(f, at, signers...)})
}

// close opens a round of two close positions, by ann and bob, and ends collecting.
func (r *rig) close(more obj) (round, first, second string) {
	r.t.Helper()
	round = r.open(more)
	first = r.position("ann", round, "yes", 0.8)
	second = r.position("bob", round, "no", 0.7)
	r.done(round, agents...)
	return round, first, second
}

// clear opens a round that ann's position wins clearly, and ends collecting.
func (r *rig) clear(more obj) (round, winner, other string) {
	r.t.Helper()
	round = r.open(more)
	winner = r.position("ann", round, "yes", 0.9)
	other = r.position("bob", round, "no", 0.3)
	r.done(round, agents...)
	return round, winner, other
}
