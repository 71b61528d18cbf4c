package pbft

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
)

// addMutable gives a target each text and two broken ones.
func addMutable(f *testing.F, texts ...[]byte) {
	for _, b := range texts {
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(bytes.Clone(b), 0))
	}
}

// proofsIn are the prepared certificates and new views in frames.
func proofsIn(f *testing.F, frames [][]byte) (prepared, newViews [][]byte) {
	for _, b := range frames {
		frame, err := DecodeFrame(b)
		if err != nil {
			f.Fatal(err)
		}
		for _, v := range frame.votes {
			switch {
			case len(v.Proof) > 0 && v.Phase == ViewChange:
				prepared = append(prepared, v.Proof)
			case len(v.Proof) > 0:
				newViews = append(newViews, v.Proof)
			}
		}
	}
	return prepared, newViews
}

// malformed reports whether a decoder refused, which it does with that code only.
func malformed(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && codeOf(err) != CodeMalformed {
		t.Fatalf("refused with %v", err)
	}
	return err != nil
}

func FuzzDecode(f *testing.F) {
	frames, certificate, prepared := samples(f)
	addMutable(f, append(frames, certificate, prepared)...)
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, cert, err := Decode(b)
		if (frame == nil) == (cert == nil) != (err != nil) {
			t.Fatalf("frame %v, certificate %v, %v", frame != nil, cert != nil, err)
		}
		if err != nil && codeOf(err) != CodeMalformed {
			t.Fatalf("refused with %v", err)
		}
		if frame != nil && !bytes.Equal(frame.Encode(), b) || cert != nil && !bytes.Equal(cert.Encode(), b) {
			t.Fatal("a message has two encodings")
		}
	})
}

func FuzzDecodeFrame(f *testing.F) {
	frames, _, _ := samples(f)
	addMutable(f, frames...)
	committee := testCommittee(testKeys(4), 1)
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, err := DecodeFrame(b)
		if malformed(t, err) {
			return
		}
		if !bytes.Equal(frame.Encode(), b) {
			t.Fatal("a frame has two encodings")
		}
		v, err := committee.Verify(frame)
		if err != nil {
			return
		}
		for i, vote := range v.votes {
			if vote.refused == nil && frame.Proof().verify(committee, frame.domain, frame.votes[i]) != nil {
				t.Fatal("a vote of a verified frame is not provable")
			}
		}
	})
}

func FuzzDecodeCertificate(f *testing.F) {
	_, certificate, _ := samples(f)
	addMutable(f, certificate)
	committee := testCommittee(testKeys(4), 1)
	f.Fuzz(func(t *testing.T, b []byte) {
		cert, err := DecodeCertificate(b)
		if malformed(t, err) {
			return
		}
		if !bytes.Equal(cert.Encode(), b) {
			t.Fatal("a certificate has two encodings")
		}
		if _, err := committee.CheckCertificate(cert.Instance, cert); err == nil && !bytes.Equal(b, certificate) {
			t.Fatal("a forged certificate verifies")
		}
	})
}

func FuzzDecodePrepared(f *testing.F) {
	frames, _, prepared := samples(f)
	more, _ := proofsIn(f, frames)
	addMutable(f, append(more, prepared)...)
	committee := testCommittee(testKeys(4), 1)
	in := testInstance(committee, "round")
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := DecodePrepared(b)
		if malformed(t, err) {
			return
		}
		if !bytes.Equal(p.Encode(), b) {
			t.Fatal("a prepared certificate has two encodings")
		}
		if p.verify(committee, in.Domain(), in.Key()) == nil && p.Digest != valueOf("A") {
			t.Fatal("a forged prepared certificate verifies")
		}
	})
}

func FuzzDecodeNewView(f *testing.F) {
	frames, _, _ := samples(f)
	_, newViews := proofsIn(f, frames)
	if len(newViews) == 0 {
		f.Fatal("no sample holds a new view")
	}
	addMutable(f, newViews...)
	committee := testCommittee(testKeys(4), 1)
	in := testInstance(committee, "round")
	f.Fuzz(func(t *testing.T, b []byte) {
		nv, err := DecodeNewView(b)
		if malformed(t, err) {
			return
		}
		if !bytes.Equal(nv.Encode(), b) {
			t.Fatal("a new view has two encodings")
		}
		for _, value := range []string{"A", "B"} { // the samples prepared A, so B is never justified
			v := Vote{Key: in.Key(), View: 1, Phase: PrePrepare, Digest: valueOf(value), Proof: b}
			if _, err := committee.newView(in.Domain(), v); err == nil && (value == "B" || !bytes.Equal(b, newViews[0])) {
				t.Fatalf("a forged new view opens the view with %s", value)
			}
		}
	})
}

func FuzzDecodeGuilt(f *testing.F) {
	keys := testKeys(4)
	committee := testCommittee(keys, 1)
	claim, commit := guiltSamples(testInstance(committee, "round"), keys[2])
	addMutable(f, claim.Encode(), commit.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := DecodeGuilt(b)
		if malformed(t, err) {
			return
		}
		if !bytes.Equal(g.Encode(), b) {
			t.Fatal("a proof of guilt has two encodings")
		}
		if g.Verify(committee) == nil && !reflect.DeepEqual(*g, claim) && !reflect.DeepEqual(*g, commit) {
			swapped := Guilt{Instance: g.Instance, A: g.B, ProofA: g.ProofB, B: g.A, ProofB: g.ProofA}
			if !reflect.DeepEqual(swapped, claim) && !reflect.DeepEqual(swapped, commit) {
				t.Fatal("forged guilt is proven")
			}
		}
	})
}

func FuzzCertificateJSON(f *testing.F) {
	_, b, _ := samples(f)
	cert, err := DecodeCertificate(b)
	if err != nil {
		f.Fatal(err)
	}
	addMutable(f, canon.MustMarshal(cert))
	committee := testCommittee(testKeys(4), 1)
	f.Fuzz(func(t *testing.T, text []byte) {
		var c Certificate
		if canon.Decode(text, &c) != nil {
			return
		}
		if committee.VerifyCertificate(cert.Instance, cert.Digest, c) == nil && !reflect.DeepEqual(&c, cert) {
			t.Fatal("a forged certificate verifies")
		}
		var again Certificate
		if text, err := canon.Marshal(c); err == nil && (canon.Decode(text, &again) != nil || !bytes.Equal(canon.MustMarshal(again), text)) {
			t.Fatal("a certificate changes through JSON")
		}
	})
}

func FuzzText(f *testing.F) {
	digest, _ := valueOf("A").MarshalText()
	signature, _ := Signature{1, 2, 3}.MarshalText()
	addMutable(f, []byte("view-change"), digest, signature, bytes.ToUpper(digest), append(bytes.Clone(signature), '='), append(bytes.Clone(signature[:40]), "\n"+string(signature[40:])...))
	f.Fuzz(func(t *testing.T, text []byte) {
		var d Digest
		if d.UnmarshalText(text) == nil {
			if again, _ := d.MarshalText(); !bytes.Equal(again, text) {
				t.Fatalf("the digest %s is also written %s", again, text)
			}
		} else if !d.IsZero() {
			t.Fatal("a refused text changes the digest")
		}
		var p Phase
		if p.UnmarshalText(text) == nil {
			if again, err := p.MarshalText(); err != nil || !bytes.Equal(again, text) {
				t.Fatalf("the phase %s is also written %s (%v)", again, text, err)
			}
		} else if p != 0 {
			t.Fatal("a refused text changes the phase")
		}
		var s Signature
		if s.UnmarshalText(text) == nil {
			if again, _ := s.MarshalText(); !bytes.Equal(again, text) {
				t.Fatalf("the signature %s is also written %s", again, text)
			}
		} else if s != (Signature{}) {
			t.Fatal("a refused text changes the signature")
		}
	})
}

// tape is the bytes that steer one fuzzed run.
type tape struct{ left []byte }

func (t *tape) byte() byte {
	if len(t.left) == 0 {
		return 0
	}
	b := t.left[0]
	t.left = t.left[1:]
	return b
}

func (t *tape) bytes(n int) []byte {
	n = min(n, len(t.left))
	out := t.left[:n]
	t.left = t.left[n:]
	return out
}

// The replica under test is member 3; member 2 lies and signs anything.
const fuzzed, liar = 3, 2

// receive takes bytes from the network as a driver does.
func (l *lone) receive(b []byte) {
	frame, cert, err := Decode(bytes.Clone(b))
	switch {
	case err != nil:
		return
	case cert != nil:
		if v, err := l.committee.CheckCertificate(l.config.Instance, cert); err == nil {
			_ = l.engine().StepCertificate(v)
		}
	default:
		wanted := l.engine().Wants(frame)
		if v, err := l.committee.Verify(frame); err == nil && (wanted || len(b)%2 == 0) {
			_ = l.engine().Step(v)
		}
	}
	if err := l.settle(fuzzed, 0); err != nil {
		l.t.Fatal(err)
	}
	l.queue = nil
}

// lie is a vote of the liar as the tape has it.
func (l *lone) lie(in *tape, proofs [][]byte) []byte {
	v := Vote{Key: l.config.Instance.Key(), Phase: Phase(in.byte() % 6), View: uint64(in.byte()), Prepared: uint64(in.byte() % 8)}
	if v.View > 250 {
		v.View = MaxView - (255 - v.View)
	}
	if value := in.byte() % 4; value > 0 {
		v.Digest = valueOf(string('@' + rune(value)))
	}
	switch which := in.byte(); {
	case which < 64:
		v.Proof = bytes.Clone(in.bytes(int(which)))
	case which < 192:
		v.Proof = bytes.Clone(proofs[int(which)%len(proofs)])
		v.Proof[int(binary.BigEndian.Uint16([]byte{in.byte(), in.byte()}))%len(v.Proof)] ^= in.byte()
	}
	return Sign(l.config.Instance.Domain(), liar, []Vote{v}, l.keys[liar]).Encode()
}

// FuzzEngine lets a replica take arbitrary bytes, honest messages whole and
// damaged, and whatever one liar can sign.
func FuzzEngine(f *testing.F) {
	frames, certificate, prepared := samples(f)
	locks, newViews := proofsIn(f, frames)
	messages, proofs := append(frames, certificate), append(append(locks, newViews...), prepared)
	whole := []byte{}
	for i := range messages {
		whole = append(whole, 1, byte(i), 4)
		f.Add([]byte{0, 1, byte(i), 2, byte(i), 0, 70, 1, 4, 4, 4, 6})
	}
	f.Add(whole)
	f.Add([]byte{0, 3, 4, 9, 1, 1, 64, 0, 0, 0, 3, 4, 3, 0, 0, 0, 3, 1, 0, 0, 1, 0, 3, 1, 0, 0, 2, 0})
	f.Add(append([]byte{1, 0, 200}, certificate[:200]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &tape{b}
		cfg := Config{Timeout: 3, Resend: 2, Doubling: 2, Validate: func(d Digest) bool { return d != valueOf("C") }}
		if in.byte()%2 == 1 {
			cfg.Expected = valueOf("A")
		}
		l := newLone(t, 4, fuzzed, cfg)
		for steps := 0; len(in.left) > 0 && steps < 200; steps++ {
			switch in.byte() % 7 {
			case 0:
				l.receive(in.bytes(int(in.byte())))
			case 1:
				l.receive(messages[int(in.byte())%len(messages)])
			case 2:
				m := bytes.Clone(messages[int(in.byte())%len(messages)])
				m[int(binary.BigEndian.Uint16([]byte{in.byte(), in.byte()}))%len(m)] ^= in.byte()
				l.receive(m)
			case 3:
				l.receive(l.lie(in, proofs))
			case 4:
				l.ticks(1)
			case 5:
				l.engine().Propose(valueOf(string('@' + rune(in.byte()%4))))
			case 6:
				l.crash(fuzzed)
				if err := l.start(fuzzed); err != nil {
					t.Fatal(err)
				}
			}
			if held, bound := l.engine().Held(), 16*4+32; held > bound {
				t.Fatalf("%d votes held, the bound is %d", held, bound)
			}
		}
		l.checkFuzzed(t)
	})
}

// checkFuzzed demands that nothing was counted that is not signed, and that
// nothing was said or concluded that the honest votes do not allow.
func (l *lone) checkFuzzed(t *testing.T) {
	e, said := l.engine(), map[slot]Vote{}
	for m := range e.votes {
		for _, list := range e.votes[m].of {
			for _, c := range list {
				if c.proof.Signer != m || c.vote.refused != nil || c.vote.Key != e.key || c.proof.verify(l.committee, e.domain, c.vote.Vote) != nil {
					t.Fatalf("member %d is held to a %s of view %d that it did not sign", m, c.vote.Phase, c.vote.View)
				}
			}
		}
	}
	for _, f := range l.members[fuzzed].disk.Frames {
		for _, v := range f.votes {
			if o, ok := said[v.slot()]; ok && !o.same(v) {
				t.Fatalf("it signed %s and %s", describe(o), describe(v))
			}
			said[v.slot()] = v
		}
	}
	if e.locked != nil && e.locked.verify(l.committee, e.domain, e.key) != nil {
		t.Fatal("its lock proves nothing")
	}
	if d := e.Decision(); d != nil && l.committee.VerifyCertificate(e.instance, valueOf("A"), *d) != nil {
		t.Fatalf("it decided %s, and the honest decided A", letterOf(d.Digest))
	}
	for _, g := range l.members[fuzzed].guilt {
		if g.Signer() != liar || g.Verify(l.committee) != nil {
			t.Fatalf("it holds proof against %d", g.Signer())
		}
	}
}
