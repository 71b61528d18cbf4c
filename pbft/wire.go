package pbft

import (
	"encoding/binary"

	"github.com/deliberd/deliberd/machine"
)

// Everything sent or stored begins with a version and a kind; there is one
// encoding of each value, and decoding refuses any other.
const (
	wireVersion     = 1
	kindFrame       = 1
	kindCertificate = 2
	kindPrepared    = 3
	kindGuilt       = 4
)

// Encode writes a frame.
func (f *Frame) Encode() []byte {
	b := append(make([]byte, 0, frameSize(f.domain, f.votes)), wireVersion, kindFrame)
	b = appendDomain(b, f.domain)
	b = binary.BigEndian.AppendUint16(b, uint16(f.signer))
	b = append(b, byte(len(f.votes)))
	for i := range f.votes {
		b = f.votes[i].appendHeader(b)
		b = binary.BigEndian.AppendUint32(b, uint32(len(f.votes[i].Proof)))
		b = append(b, f.votes[i].Proof...)
	}
	return append(b, f.signature[:]...)
}

// Encode writes a certificate.
func (c *Certificate) Encode() []byte {
	b := append(make([]byte, 0, 512+proofsSize(c.Votes)), wireVersion, kindCertificate)
	b = appendInstance(b, c.Instance)
	b = binary.BigEndian.AppendUint64(b, c.View)
	b = append(b, c.Digest[:]...)
	return appendProofs(b, c.Votes)
}

// Encode writes a prepared certificate.
func (p *Prepared) Encode() []byte {
	b := append(make([]byte, 0, 64+proofsSize(p.Votes)), wireVersion, kindPrepared)
	return p.append(b)
}

func (p *Prepared) append(b []byte) []byte {
	b = binary.BigEndian.AppendUint64(b, p.View)
	b = append(b, p.Digest[:]...)
	return appendProofs(b, p.Votes)
}

// Encode writes the proof of a new view, as a PrePrepare carries it.
func (nv *NewView) Encode() []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(nv.Claims)))
	for _, c := range nv.Claims {
		b = binary.BigEndian.AppendUint64(b, c.Prepared)
		b = append(b, c.Digest[:]...)
		b = appendProof(b, c.Proof)
	}
	if nv.Highest == nil {
		return append(b, 0)
	}
	return nv.Highest.append(append(b, 1))
}

// Encode writes a proof of guilt.
func (g *Guilt) Encode() []byte {
	b := append(make([]byte, 0, 512+proofsSize([]Proof{g.ProofA, g.ProofB})), wireVersion, kindGuilt)
	b = appendInstance(b, g.Instance)
	b = appendProof(g.A.appendHeader(b), g.ProofA)
	return appendProof(g.B.appendHeader(b), g.ProofB)
}

func proofsSize(proofs []Proof) int {
	size := 0
	for i := range proofs {
		size += 67 + 32*len(proofs[i].Hashes)
	}
	return size
}

func appendProofs(b []byte, proofs []Proof) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(len(proofs)))
	for _, p := range proofs {
		b = appendProof(b, p)
	}
	return b
}

func appendProof(b []byte, p Proof) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(p.Signer))
	b = append(b, byte(len(p.Hashes)))
	for i := range p.Hashes {
		b = append(b, p.Hashes[i][:]...)
	}
	return append(b, p.Signature[:]...)
}

// Decode reads what a peer sent: exactly one of the results is set when it is
// well-formed. Nothing in it has been verified. It refuses with malformed.
func Decode(b []byte) (*Frame, *Certificate, error) {
	if len(b) < 2 || len(b) > MaxFrame {
		return nil, nil, machine.Refuse(CodeMalformed, "", "a message has 2 to %d bytes, got %d", MaxFrame, len(b))
	}
	switch {
	case b[0] == wireVersion && b[1] == kindFrame:
		f, err := DecodeFrame(b)
		return f, nil, err
	case b[0] == wireVersion && b[1] == kindCertificate:
		c, err := DecodeCertificate(b)
		return nil, c, err
	}
	return nil, nil, machine.Refuse(CodeMalformed, "", "version %d kind %d is unknown", b[0], b[1])
}

// DecodeFrame reads what [Frame.Encode] wrote. It refuses with malformed.
func DecodeFrame(b []byte) (*Frame, error) {
	r := reader{left: b}
	r.head(kindFrame)
	f := &Frame{domain: r.domain(), signer: int(r.u16())}
	count := int(r.u8())
	r.want(count >= 1 && count <= MaxVotes && f.domain.Protocol == Protocol)
	for i := 0; i < count && !r.bad; i++ {
		v := r.vote()
		v.Proof = r.bytes(int(r.u32()))
		r.want(v.check() == nil)
		f.votes = append(f.votes, v)
	}
	f.signature = r.signature()
	if err := r.end("frame"); err != nil {
		return nil, err
	}
	f.hashes = hashesOf(f.votes)
	return f, nil
}

// DecodeCertificate reads what [Certificate.Encode] wrote. It refuses with malformed.
func DecodeCertificate(b []byte) (*Certificate, error) {
	r := reader{left: b}
	r.head(kindCertificate)
	c := &Certificate{Instance: r.instance(), View: r.u64(), Digest: r.digest(), Votes: r.proofs()}
	r.want(c.View <= MaxView)
	if err := r.end("certificate"); err != nil {
		return nil, err
	}
	return c, nil
}

// DecodePrepared reads what [Prepared.Encode] wrote. It refuses with malformed.
func DecodePrepared(b []byte) (*Prepared, error) {
	r := reader{left: b}
	r.head(kindPrepared)
	p := r.prepared()
	if err := r.end("prepared certificate"); err != nil {
		return nil, err
	}
	return p, nil
}

// DecodeGuilt reads what [Guilt.Encode] wrote. It refuses with malformed.
func DecodeGuilt(b []byte) (*Guilt, error) {
	r := reader{left: b}
	r.head(kindGuilt)
	g := &Guilt{Instance: r.instance(), A: r.vote(), ProofA: r.proof(), B: r.vote(), ProofB: r.proof()}
	if err := r.end("proof of guilt"); err != nil {
		return nil, err
	}
	return g, nil
}

// DecodeNewView reads what [NewView.Encode] wrote. It refuses with malformed.
func DecodeNewView(b []byte) (*NewView, error) {
	r := reader{left: b}
	nv := &NewView{}
	count := int(r.u16())
	r.want(count <= MaxMembers)
	for i := 0; i < count && !r.bad; i++ {
		nv.Claims = append(nv.Claims, Claim{Prepared: r.u64(), Digest: r.digest(), Proof: r.proof()})
	}
	switch r.u8() {
	case 0:
	case 1:
		nv.Highest = r.prepared()
	default:
		r.bad = true
	}
	if err := r.end("new view"); err != nil {
		return nil, err
	}
	return nv, nil
}

// reader takes values off the front of a text and remembers that one was missing.
type reader struct {
	left []byte
	bad  bool
}

func (r *reader) want(ok bool) { r.bad = r.bad || !ok }

// bytes takes n bytes; they stay part of the text. None is nil.
func (r *reader) bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.left) {
		r.bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	out := r.left[:n:n]
	r.left = r.left[n:]
	return out
}

func (r *reader) u8() uint8 {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) digest() (d Digest) {
	copy(d[:], r.bytes(len(d)))
	return d
}

func (r *reader) signature() (s Signature) {
	copy(s[:], r.bytes(len(s)))
	return s
}

func (r *reader) name() string {
	n := int(r.u8())
	r.want(n >= 1 && n <= MaxName)
	return string(r.bytes(n))
}

func (r *reader) domain() Domain {
	return Domain{Protocol: r.name(), Genesis: r.name(), Generation: r.u64(), Epoch: r.u64()}
}

func (r *reader) instance() Instance {
	d := r.domain()
	i := Instance{Protocol: d.Protocol, Genesis: d.Genesis, Generation: d.Generation, Epoch: d.Epoch, Purpose: r.name(), ID: r.name()}
	r.want(i.Check() == nil)
	return i
}

// vote takes the signed part of a vote.
func (r *reader) vote() Vote {
	return Vote{Key: r.digest(), View: r.u64(), Phase: Phase(r.u8()), Digest: r.digest(), Prepared: r.u64()}
}

func (r *reader) head(kind byte) { r.want(r.u8() == wireVersion && r.u8() == kind) }

func (r *reader) proof() Proof {
	p := Proof{Signer: int(r.u16())}
	count := int(r.u8())
	r.want(count >= 1 && count <= MaxVotes && count*32 <= len(r.left))
	if r.bad {
		return p
	}
	p.Hashes = make([]Digest, count)
	for i := range p.Hashes {
		p.Hashes[i] = r.digest()
	}
	p.Signature = r.signature()
	return p
}

func (r *reader) proofs() []Proof {
	count := int(r.u16())
	r.want(count <= MaxMembers)
	var out []Proof
	for i := 0; i < count && !r.bad; i++ {
		out = append(out, r.proof())
	}
	return out
}

func (r *reader) prepared() *Prepared {
	p := &Prepared{View: r.u64(), Digest: r.digest(), Votes: r.proofs()}
	r.want(p.View <= MaxView)
	return p
}

func (r *reader) end(what string) error {
	if r.bad || len(r.left) > 0 {
		return machine.Refuse(CodeMalformed, "", "not a %s of version %d", what, wireVersion)
	}
	return nil
}
