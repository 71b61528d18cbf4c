package sim

import (
	"encoding/binary"

	"github.com/deliberd/deliberd/pbft"
)

// Where the fields of an encoded frame stand.
var (
	domainLength = 2 + 1 + len(pbft.Protocol) + 1 + len(genesis) + 8 + 8
	signerAt     = domainLength
	voteAt       = domainLength + 3 // the first vote: key, view, phase, digest, prepared
	viewAt       = voteAt + 32
	phaseAt      = viewAt + 8
	digestAt     = phaseAt + 1
)

// forge alters a frame of an honest member, as whoever carries it could.
func (r *run) forge(l *liar, m *message, v pbft.Vote) {
	luck := r.draw(l, m.id, 20)
	if luck%3 > 0 || l.lies >= maxLies || !r.fault(1000, lieOf, uint64(l.seat), m.id, 21) {
		return
	}
	l.lies++
	b := m.frame.Encode()
	switch luck >> 8 % 7 {
	case 0: // another's name
		binary.BigEndian.PutUint16(b[signerAt:], uint16(luck>>16%uint64(r.n)))
	case 1:
		binary.BigEndian.PutUint64(b[viewAt:], v.View^1)
	case 2:
		b[phaseAt] = byte(1 + luck>>16%4)
	case 3:
		d := value("BA"[luck>>16%2])
		copy(b[digestAt:], d[:])
	case 4: // any byte
		b[luck>>16%uint64(len(b))] ^= byte(1 + luck>>48%255)
	case 5: // its own signature under an honest name
		own := pbft.Vote{Key: r.key, View: v.View, Phase: v.Phase, Digest: value("BA"[luck>>16%2])}
		b = r.sign(r.domain, l.seat, []pbft.Vote{own}).Encode()
		binary.BigEndian.PutUint16(b[signerAt:], uint16(m.frame.Signer()))
	case 6: // the signature of a vote on another vote
		other := r.pool.messages[luck>>16%uint64(len(r.pool.messages))].frame.Encode()
		copy(b[len(b)-64:], other[len(other)-64:])
	}
	if forged := r.admit(b, -1-l.seat, mix(m.id, luck)); forged != nil {
		r.tell(forged, luck>>20)
	}
}

// forgeCertificate fills a quorum of commits with whatever there is: too few
// commits, one of them repeated, others' signatures on other votes.
func (r *run) forgeCertificate(l *liar) {
	luck := r.draw(l, uint64(r.now), 22)
	d, view := value("AB"[luck%2]), luck>>4%(r.result.Views+1)
	cert := &pbft.Certificate{Instance: r.instance, View: view, Digest: d}
	for seat := range r.n {
		v := pbft.Vote{Key: r.key, View: view, Phase: pbft.Commit, Digest: d}
		proof, ok := r.pool.proof(seat, v)
		switch {
		case r.liar[seat]:
			proof = r.sign(r.domain, seat, []pbft.Vote{v}).Proof()
		case !ok && luck>>12%4 == 0: // the acceptance of the value for the commit
			v.Phase = pbft.Prepare
			if proof, ok = r.pool.proof(seat, v); !ok {
				continue
			}
		case !ok:
			continue
		}
		cert.Votes = append(cert.Votes, proof)
	}
	for len(cert.Votes) < r.committee.Q() && luck>>16%3 > 0 && len(cert.Votes) > 0 {
		again := cert.Votes[len(cert.Votes)-1]
		if luck>>20%2 == 0 {
			again.Signer = min(again.Signer+1, r.n-1) // the same signature under the next name
		}
		cert.Votes = append(cert.Votes, again)
	}
	cert.Votes = cert.Votes[:min(len(cert.Votes), r.committee.Q())]
	if luck>>24%6 == 0 { // a certificate of another instance, epoch, generation or cluster
		r.misplace(cert, luck>>28)
	}
	if m := r.admit(cert.Encode(), -1-l.seat, luck); m != nil {
		r.tell(m, luck>>32)
	}
}

// misplace makes a certificate that honest members signed elsewhere look as if
// it were of this instance.
func (r *run) misplace(cert *pbft.Certificate, luck uint64) {
	in := r.elsewhere(luck)
	cert.Votes = nil
	for seat := range r.committee.Q() {
		v := pbft.Vote{Key: in.Key(), View: cert.View, Phase: pbft.Commit, Digest: cert.Digest}
		cert.Votes = append(cert.Votes, r.sign(in.Domain(), seat, []pbft.Vote{v}).Proof())
	}
	if luck>>8%2 == 0 {
		cert.Instance = in
	}
}

// elsewhere is another instance in which the same keys vote.
func (r *run) elsewhere(luck uint64) pbft.Instance {
	in := r.instance
	switch luck % 5 {
	case 0:
		in.ID = "other"
	case 1:
		in.Epoch++
	case 2:
		in.Generation++
	case 3:
		in.Genesis = genesis[:62] + "fe"
	case 4:
		in.Purpose = "simulatioN"
	}
	return in
}

// misdirect signs a vote of this instance in the domain of another.
func (r *run) misdirect(l *liar, in pbft.Instance, luck uint64) {
	v := pbft.Vote{Key: r.key, View: luck >> 12 % (r.result.Views + 2), Phase: pbft.Prepare + pbft.Phase(luck>>16%2), Digest: value("AB"[luck>>20%2])}
	if m := r.admit(r.sign(in.Domain(), l.seat, []pbft.Vote{v}).Encode(), -1-l.seat, luck); m != nil {
		r.tell(m, ^uint64(0))
	}
}

// replay sends again what was sent before, or what was said elsewhere.
func (r *run) replay(l *liar) {
	luck := r.draw(l, uint64(r.now), 23)
	if luck%2 == 0 && len(r.pool.messages) > 0 {
		m := *r.pool.messages[luck>>8%uint64(len(r.pool.messages))]
		m.again = luck
		r.tell(&m, luck>>24)
		return
	}
	in := r.elsewhere(luck >> 4)
	seat := int(luck >> 8 % uint64(r.n))
	if luck>>22%3 == 0 {
		r.misdirect(l, in, luck)
		return
	}
	view := luck >> 12 % (r.result.Views + 2)
	v := pbft.Vote{Key: in.Key(), View: view, Phase: pbft.Phase(1 + luck>>16%3), Digest: value("AB"[luck>>20%2])}
	if v.Phase == pbft.PrePrepare && view > 0 {
		v.Phase = pbft.Prepare
	}
	b := r.sign(in.Domain(), seat, []pbft.Vote{v}).Encode()
	if luck>>21%2 == 0 { // moved here without signing again
		here := r.sign(r.domain, seat, []pbft.Vote{v}).Encode()
		copy(b[:domainLength], here[:domainLength])
		copy(b[voteAt:], r.key[:])
	}
	if m := r.admit(b, -1-l.seat, luck); m != nil {
		r.tell(m, luck>>24)
	}
}
