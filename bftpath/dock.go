package bftpath

import "github.com/deliberd/deliberd/pbft"

// dock is the proofs of guilt: the first against each voter of an epoch, so
// that no voter can make this node hold more than one.
type dock struct {
	of     map[accused]struct{}
	proofs []pbft.Guilt
}

type accused struct {
	domain pbft.Domain
	signer int
}

// add reports whether the proof is the first against its signer.
func (d *dock) add(g pbft.Guilt) bool {
	who := accused{g.Instance.Domain(), g.Signer()}
	if _, ok := d.of[who]; ok {
		return false
	}
	if d.of == nil {
		d.of = map[accused]struct{}{}
	}
	d.of[who] = struct{}{}
	d.proofs = append(d.proofs, g)
	return true
}
