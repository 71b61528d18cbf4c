package model

import (
	"crypto/sha256"
	"fmt"

	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/pbft/internal/simkey"
)

// world is one instance among four simulated members, and every vote in it.
type world struct {
	ring      *simkey.Ring
	committee *pbft.Committee
	instance  pbft.Instance
	key       pbft.Digest
	views     int
	signed    map[string]pbft.Verified // by signer and content: each vote is signed once
	alphabet  [N][]message             // by signer, what others may hear from it
}

// message is a vote as it is delivered, and its place in a packed voice.
type message struct {
	from     int
	bit      uint64 // what hearing it adds to the member's voice
	slot     uint64 // all bits of the slot
	kind     Kind
	view     int
	value    Value
	verified pbft.Verified
	name     string
}

func newWorld(views int) *world {
	w := &world{ring: simkey.New(1, N), views: views, signed: map[string]pbft.Verified{}}
	w.committee = pbft.NewSimulatedCommittee(1, w.ring)
	w.instance = pbft.Instance{Protocol: pbft.Protocol, Genesis: "genesis", Generation: 1, Epoch: 1, Purpose: "model", ID: "0"}
	for i := 0; w.committee.Primary(w.instance.Key(), 0) != 0; i++ {
		w.instance.ID = fmt.Sprint(i)
	}
	w.key = w.instance.Key()
	for from := range N {
		w.addMessages(from)
	}
	return w
}

// digest is the digest of a value, zero for None; valueOf is its inverse.
func digest(x Value) pbft.Digest {
	if x == None {
		return pbft.Digest{}
	}
	return digests[x]
}

var digests = [...]pbft.Digest{A: sha256.Sum256([]byte("A")), B: sha256.Sum256([]byte("B"))}

func valueOf(d pbft.Digest) Value {
	for _, x := range AllValues {
		if d == digests[x] {
			return x
		}
	}
	if !d.IsZero() {
		panic("a digest of no value")
	}
	return None
}

// sign makes a member's frame of votes, once for equal ones.
func (w *world) sign(signer int, votes ...pbft.Vote) pbft.Verified {
	id := fmt.Sprint(signer)
	for i := range votes {
		votes[i].Key = w.key
		id += fmt.Sprint(" ", votes[i].Phase, votes[i].View, votes[i].Prepared) + string(votes[i].Digest[:]) + string(votes[i].Proof)
	}
	if v, ok := w.signed[id]; ok {
		return v
	}
	v, err := w.committee.Verify(pbft.SignSimulated(w.instance.Domain(), signer, votes, w.ring))
	if err != nil {
		panic(err)
	}
	w.signed[id] = v
	return v
}

// acceptance is the vote by which a member accepts x in a view. As pre-prepare
// of a later view it rests on view changes by the members from first on, of
// whom the last makes the claim.
func (w *world) acceptance(member, view int, x Value, first int, claim Claim) pbft.Vote {
	v := pbft.Vote{View: uint64(view), Phase: pbft.Prepare, Digest: digest(x)}
	if member != Primary(view) {
		return v
	}
	v.Phase = pbft.PrePrepare
	if view == 0 {
		return v
	}
	nv := &pbft.NewView{}
	for m := first; m < first+3; m++ {
		c := Claim(0)
		if m == first+2 {
			c = claim
		}
		nv.Claims = append(nv.Claims, w.quote(m, view, c))
	}
	if claim != 0 {
		nv.Highest = w.prepared(claim)
	}
	v.Proof = nv.Encode()
	return v
}

func (w *world) quote(member, view int, c Claim) pbft.Claim {
	v := w.change(view, c)
	return pbft.Claim{Prepared: v.Prepared, Digest: v.Digest, Proof: w.sign(member, v).Frame().Proof()}
}

// prepared is the certificate behind a claim.
func (w *world) prepared(c Claim) *pbft.Prepared {
	p := &pbft.Prepared{View: uint64(c.View()), Digest: digest(c.Value())}
	for m := range 3 {
		v := w.acceptance(m, c.View(), c.Value(), 0, 0)
		p.Votes = append(p.Votes, w.sign(m, v).Frame().Proof())
	}
	return p
}

func (w *world) change(into int, c Claim) pbft.Vote {
	v := pbft.Vote{View: uint64(into), Phase: pbft.ViewChange, Digest: digest(c.Value())}
	if c != 0 {
		v.Prepared, v.Proof = uint64(c.View())+1, w.prepared(c).Encode()
	}
	return v
}

// addMessages makes all that others may hear from a member.
func (w *world) addMessages(from int) {
	for v := range w.views {
		for _, x := range AllValues {
			h := Heard{}
			h.Accepted[v][from] = Only(x)
			w.addMessage(from, h, w.acceptance(from, v, x, 0, 0))
			if v > 0 && from == Primary(v) {
				w.addMessage(from, h, w.acceptance(from, v, x, 1, ClaimOf(v-1, x)))
			}
			h = Heard{}
			h.Committed[v][from] = Only(x)
			w.addMessage(from, h, pbft.Vote{View: uint64(v), Phase: pbft.Commit, Digest: digest(x)})
		}
		for c := Claim(0); v > 0 && c <= ClaimOf(v-1, B); c++ {
			h := Heard{}
			h.Changed[v][from] = 1 << c
			w.addMessage(from, h, w.change(v, c))
		}
	}
}

func (w *world) addMessage(from int, h Heard, v pbft.Vote) {
	m := message{from: from, bit: h.packVoice(from), kind: Kind(v.Phase), view: int(v.View), value: valueOf(v.Digest), verified: w.sign(from, v), name: fmt.Sprintf("hears %d: %s", from, describe(v))}
	for view := range w.views {
		switch { // the slot of the one bit that is set
		case h.Accepted[view][from] != 0:
			h.Accepted[view][from] = Both
		case h.Committed[view][from] != 0:
			h.Committed[view][from] = Both
		case h.Changed[view][from] != 0:
			h.Changed[view][from] = 1<<bitsPerChange[view] - 1
		}
	}
	m.slot = h.packVoice(from)
	w.alphabet[from] = append(w.alphabet[from], m)
}

func describe(v pbft.Vote) string {
	if v.Phase == pbft.ViewChange {
		c := Claim(0)
		if v.Prepared > 0 {
			c = ClaimOf(int(v.Prepared)-1, valueOf(v.Digest))
		}
		return fmt.Sprintf("%s(%d, %s)", v.Phase, v.View, c)
	}
	return fmt.Sprintf("%s(%d, %s)", v.Phase, v.View, valueOf(v.Digest))
}

// bitsPerChange is the number of claims possible in a view change, by view.
var bitsPerChange = [MaxViews]int{0, 3, 5}

// bitsPerVoice is what one member can say, packed.
const bitsPerVoice = 20

// packVoice is what has been heard of one member as a number of 20 bits.
func (h *Heard) packVoice(m int) uint64 {
	out := uint64(0)
	for v := range MaxViews {
		out = out<<2 | uint64(h.Accepted[v][m])
		out = out<<2 | uint64(h.Committed[v][m])
		out = out<<bitsPerChange[v] | uint64(h.Changed[v][m])
	}
	return out
}

// voiceAt is where a member's voice stands among those of the three others.
func voiceAt(me, from int) int { return bitsPerVoice * ((from - me - 1 + N) % N) }

// pack is what a member has heard of the three others.
func (h *Heard) pack(me int) uint64 {
	out := uint64(0)
	for m := range N {
		if m != me {
			out |= h.packVoice(m) << voiceAt(me, m)
		}
	}
	return out
}

// unpack is the inverse of pack.
func unpack(me int, packed uint64) *Heard {
	h := &Heard{}
	for m := range N {
		if m == me {
			continue
		}
		voice := packed >> voiceAt(me, m)
		for v := MaxViews - 1; v >= 0; v-- {
			h.Changed[v][m] = Claims(voice & (1<<bitsPerChange[v] - 1))
			voice >>= bitsPerChange[v]
			h.Committed[v][m] = Values(voice & 3)
			h.Accepted[v][m] = Values(voice >> 2 & 3)
			voice >>= 4
		}
	}
	return h
}
