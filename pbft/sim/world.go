package sim

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/pbft/internal/simkey"
)

// genesis is the cluster of every simulation.
var genesis = strings.Repeat("0", 62) + "ff"

// World is what all schedules of one committee size share: keys, committee and
// instance. It does not change and may be shared between goroutines.
type World struct {
	n         int
	committee *pbft.Committee
	instance  pbft.Instance // whose primary in view 0 is member 0
	key       pbft.Digest
	domain    pbft.Domain
	ring      *simkey.Ring
	keys      []ed25519.PrivateKey // instead of ring, when genuine
	other     pbft.Digest          // key of another instance of the domain
}

// NewWorld makes the committee of n members, with Ed25519 keys if genuine.
func NewWorld(n int, genuine bool) *World {
	w := &World{n: n}
	if genuine {
		members := machine.Committee{Epoch: 1}
		for i := range n {
			seed := sha256.Sum256(fmt.Append(nil, "simulated member ", i))
			key := ed25519.NewKeyFromSeed(seed[:])
			w.keys = append(w.keys, key)
			members.Members = append(members.Members, machine.Member{Node: fmt.Sprintf("node%03d", i), Key: [32]byte(key.Public().(ed25519.PublicKey))})
		}
		c, err := pbft.NewCommittee(members)
		if err != nil {
			panic(err) // keys made here are distinct and of large order
		}
		w.committee = c
	} else {
		w.ring = simkey.New(1, n)
		w.committee = pbft.NewSimulatedCommittee(1, w.ring)
	}
	w.instance = pbft.Instance{Protocol: pbft.Protocol, Genesis: genesis, Generation: 1, Epoch: 1, Purpose: "simulation", ID: "0"}
	for i := 1; w.committee.Primary(w.instance.Key(), 0) != 0; i++ {
		w.instance.ID = fmt.Sprint(i)
	}
	other := w.instance
	other.ID = "other"
	w.key, w.domain, w.other = w.instance.Key(), w.instance.Domain(), other.Key()
	return w
}

// sign makes a frame of a member in any domain.
func (w *World) sign(d pbft.Domain, seat int, votes []pbft.Vote) *pbft.Frame {
	if w.ring != nil {
		return pbft.SignSimulated(d, seat, votes, w.ring)
	}
	return pbft.Sign(d, seat, votes, w.keys[seat])
}

// primary is the member that proposes in a view.
func (w *World) primary(view uint64) int { return w.committee.Primary(w.key, view) }

// The values of every simulation, by letter: A and B are right, X is wrong.
var (
	valueA = value('A')
	valueB = value('B')
	valueX = value('X')
)

func value(letter byte) pbft.Digest { return sha256.Sum256([]byte{'v', letter}) }

// letter names a value in transcripts.
func letter(d pbft.Digest) string {
	switch d {
	case valueA:
		return "A"
	case valueB:
		return "B"
	case valueX:
		return "X"
	case pbft.Digest{}:
		return "nothing"
	}
	return d.String()[:8]
}

func describe(v pbft.Vote) string {
	if v.Phase == pbft.ViewChange && v.Prepared > 0 {
		return fmt.Sprintf("view-change(%d, %s prepared in view %d)", v.View, letter(v.Digest), v.Prepared-1)
	}
	if v.Phase == pbft.ViewChange {
		return fmt.Sprintf("view-change(%d, nothing prepared)", v.View)
	}
	return fmt.Sprintf("%s(%d, %s)", v.Phase, v.View, letter(v.Digest))
}
