package pbft

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft/quorum"
)

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return err.Error()
}

// samples are one encoded message of each kind, taken from runs of the protocol.
func samples(t testing.TB) (frames [][]byte, certificate, prepared []byte) {
	t.Helper()
	net := newNetwork(4, Config{Validate: func(Digest) bool { return true }, Timeout: 5, Resend: 100}, nil)
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(net.startAll())
	net.members[0].engine.Propose(valueOf("A"))
	must(net.settle(0, 0))
	must(net.run(func(p packet) bool { return p.frame.votes[0].Phase != Commit }))
	net.queue = nil
	for range 5 { // all commits are lost: a view change with certificates follows
		for i := range net.members {
			must(net.tick(i))
		}
	}
	must(net.run(all))
	for _, m := range net.members {
		for _, f := range m.disk.Frames {
			frames = append(frames, f.Encode())
		}
	}
	return frames, net.members[0].disk.Certificate.Encode(), net.members[0].disk.Prepared[0].Encode()
}

func TestSamplesHoldEveryPhaseAndProof(t *testing.T) {
	frames, _, _ := samples(t)
	phases, proofs := map[Phase]bool{}, map[Phase]bool{}
	for _, b := range frames {
		f, err := DecodeFrame(b)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range f.votes {
			phases[v.Phase] = true
			proofs[v.Phase] = proofs[v.Phase] || len(v.Proof) > 0
		}
	}
	if len(phases) != 4 || !proofs[PrePrepare] || !proofs[ViewChange] {
		t.Errorf("phases %v, with proofs %v", phases, proofs)
	}
}

func TestEveryEncodingReadsBackAndHasOneForm(t *testing.T) {
	frames, certificate, prepared := samples(t)
	for _, b := range append(frames, certificate) {
		f, c, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		again := []byte(nil)
		if f != nil {
			again = f.Encode()
		} else {
			again = c.Encode()
		}
		if !bytes.Equal(again, b) {
			t.Error("decoding and encoding changes a message")
		}
		for cut := range b {
			if _, _, err := Decode(b[:cut]); codeOf(err) != CodeMalformed {
				t.Fatalf("a message cut to %d bytes: %v", cut, err)
			}
		}
		if _, _, err := Decode(append(b[:len(b):len(b)], 0)); codeOf(err) != CodeMalformed {
			t.Error("a message with a byte more is accepted")
		}
	}
	if p, err := DecodePrepared(prepared); err != nil || !bytes.Equal(p.Encode(), prepared) {
		t.Errorf("prepared certificate: %v", err)
	}
}

func TestOversizedAndForeignMessagesAreMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"empty": nil, "too long": make([]byte, MaxFrame+1), "another version": {2, 1}, "another kind": {1, 9},
	} {
		if _, _, err := Decode(b); codeOf(err) != CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	d := Domain{Protocol: "another/1", Genesis: testGenesis, Epoch: 1}
	f := Sign(d, 0, []Vote{{Phase: Prepare, Digest: valueOf("A")}}, testKeys(1)[0])
	if _, err := DecodeFrame(f.Encode()); codeOf(err) != CodeMalformed {
		t.Errorf("another protocol: %v", err)
	}
}

func TestTheProofsOfTheLargestCommitteeFitAFrame(t *testing.T) {
	proofs := make([]Proof, quorum.Q(MaxMembers))
	nv := &NewView{Highest: &Prepared{Votes: proofs}}
	for i := range proofs {
		proofs[i] = Proof{Signer: MaxMembers - 1, Hashes: make([]Digest, MaxVotes)}
		nv.Claims = append(nv.Claims, Claim{Proof: proofs[i]})
	}
	d := Domain{Protocol: Protocol, Genesis: strings.Repeat("g", MaxName), Epoch: 1}
	v := Vote{View: 1, Phase: PrePrepare, Digest: valueOf("A"), Proof: nv.Encode()}
	f := &Frame{domain: d, votes: []Vote{v}}
	if _, err := DecodeFrame(f.Encode()); err != nil || len(f.Encode()) > MaxFrame {
		t.Errorf("%d bytes, a frame has at most %d: %v", len(f.Encode()), MaxFrame, err)
	}
}

func TestVotesWhoseFieldsDoNotFitTheirPhaseAreMalformed(t *testing.T) {
	a := valueOf("A")
	for name, v := range map[string]Vote{
		"no digest":                     {Phase: Prepare},
		"no phase":                      {Digest: a},
		"phase 5":                       {Phase: 5, Digest: a},
		"a prepare that claims":         {Phase: Prepare, Digest: a, Prepared: 1},
		"a commit with a proof":         {Phase: Commit, Digest: a, Proof: []byte{1}},
		"a new view without proof":      {Phase: PrePrepare, View: 1, Digest: a},
		"a first view with proof":       {Phase: PrePrepare, Digest: a, Proof: []byte{1}},
		"a view change to view 0":       {Phase: ViewChange},
		"a claim without certificate":   {Phase: ViewChange, View: 1, Prepared: 1, Digest: a},
		"a digest without claim":        {Phase: ViewChange, View: 1, Digest: a},
		"a claim of the view to enter":  {Phase: ViewChange, View: 1, Prepared: 2, Digest: a, Proof: []byte{1}},
		"a view that could overflow":    {Phase: Prepare, View: MaxView + 1, Digest: a},
		"a view change proving nothing": {Phase: ViewChange, View: 1, Proof: []byte{1}},
	} {
		f := Sign(Domain{Protocol: Protocol, Genesis: testGenesis, Epoch: 1}, 0, []Vote{v}, testKeys(1)[0])
		if _, err := DecodeFrame(f.Encode()); codeOf(err) != CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCertificatesReadBackFromJSONAndFitTheirSchema(t *testing.T) {
	_, b, _ := samples(t)
	cert, err := DecodeCertificate(b)
	if err != nil {
		t.Fatal(err)
	}
	text, err := canon.Marshal(cert)
	if err != nil {
		t.Fatal(err)
	}
	var back Certificate
	if err := canon.Decode(text, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(&back, cert) {
		t.Error("a certificate changes through JSON")
	}
	schema := compiled(t)
	if err := schema.Validate(decoded(t, text)); err != nil {
		t.Errorf("the schema refuses a certificate: %v", err)
	}
	for name, change := range map[string]func(map[string]any){
		"uppercase digest": func(m map[string]any) { m["digest"] = "A" + m["digest"].(string)[1:] },
		"short digest":     func(m map[string]any) { m["digest"] = "00" },
		"more":             func(m map[string]any) { m["more"] = 1 },
		"negative view":    func(m map[string]any) { m["view"] = -1 },
		"padded signature": func(m map[string]any) {
			m["votes"].([]any)[0].(map[string]any)["signature"] = back.Votes[0].sigText() + "="
		},
	} {
		m := decoded(t, text).(map[string]any)
		change(m)
		bad, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(decoded(t, bad)); err == nil {
			t.Errorf("%s: the schema accepts it", name)
		}
		if err := canon.Decode(bad, &Certificate{}); err == nil {
			t.Errorf("%s: decoding accepts it", name)
		}
	}
}

func (p Proof) sigText() string {
	text, _ := p.Signature.MarshalText()
	return string(text)
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("certificate.json", decoded(t, CertificateSchema)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("certificate.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t *testing.T, text []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
