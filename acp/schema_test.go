package acp_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// decoders are what every kind's body goes through, with its schema's name.
var decoders = map[string]func(json.RawMessage) error{
	"submit":    func(b json.RawMessage) error { _, err := acp.DecodeSubmit(b); return err },
	"respond":   func(b json.RawMessage) error { _, err := acp.DecodeRespond(b); return err },
	"escalate":  func(b json.RawMessage) error { _, err := acp.DecodeEscalate(b); return err },
	"resolve":   func(b json.RawMessage) error { _, err := acp.DecodeResolve(b); return err },
	"configure": func(b json.RawMessage) error { _, err := acp.DecodeConfigure(b); return err },
}

func TestSchemaAndDecodeAgreeOnBodies(t *testing.T) {
	const id = anyID
	long := strings.Repeat("x", 4097)
	for name, cases := range map[string]map[string]bool{
		"submit": {
			`{"domain":"risk.credit","payload":{"a":1},"quorum":2,"type":"proposal"}`:                                                 true,
			`{"domain":"d","expires_at":"2035-01-15T10:00:00Z","payload":{},"proposal_id":"` + id + `","quorum":1,"type":"proposal"}`: true,
			`{"domain":"d","expires_in_ms":1,"payload":{},"quorum_policy":{"threshold":0.5,"type":"weighted"},"type":"proposal"}`:     true,
			`{"domain":"d","escalate_policy":"p","payload":{},"quorum_policy":{"type":"unanimous"},"type":"proposal"}`:                true,
			`{"domain":"d","payload":{},"type":"observation"}`:                                                                        true,
			`{"domain":"d","payload":{},"quorum":9007199254740991,"type":"hypothesis"}`:                                               true,
			`{"domain":"d","payload":{},"type":"proposal"}`:                                                                           false,
			`{"domain":"d","payload":{},"quorum":0,"type":"proposal"}`:                                                                false,
			`{"domain":"d","payload":{},"quorum":null,"type":"observation"}`:                                                          false,
			`{"domain":"d","payload":{},"quorum":1.5,"type":"proposal"}`:                                                              false,
			`{"domain":"d","payload":{},"quorum":1,"quorum_policy":{"type":"unanimous"},"type":"proposal"}`:                           false,
			`{"domain":"d","payload":{},"quorum_policy":{"threshold":1,"type":"unanimous"},"type":"proposal"}`:                        false,
			`{"domain":"d","payload":{},"quorum_policy":{"type":"weighted"},"type":"proposal"}`:                                       false,
			`{"domain":"d","payload":{},"quorum_policy":{"threshold":null,"type":"unanimous"},"type":"proposal"}`:                     false,
			`{"domain":"d","payload":{},"quorum_policy":{"x":1,"type":"unanimous"},"type":"proposal"}`:                                false,
			`{"domain":"d","expires_at":"2035-01-15T10:00:00Z","expires_in_ms":1,"payload":{},"quorum":1,"type":"proposal"}`:          false,
			`{"domain":"d","expires_at":"2035-01-15","payload":{},"quorum":1,"type":"proposal"}`:                                      false,
			`{"domain":"d","expires_in_ms":0,"payload":{},"quorum":1,"type":"proposal"}`:                                              false,
			`{"domain":"d e","payload":{},"quorum":1,"type":"proposal"}`:                                                              false,
			`{"domain":"","payload":{},"quorum":1,"type":"proposal"}`:                                                                 false,
			`{"domain":"d","payload":[],"quorum":1,"type":"proposal"}`:                                                                false,
			`{"domain":"d","payload":{},"quorum":1,"type":"Proposal"}`:                                                                false,
			`{"domain":"d","payload":{},"quorum":1,"type":"proposal","x":1}`:                                                          false,
			`{"domain":"d","payload":{},"proposal_id":"01hxyz0000000000000000abcd","quorum":1,"type":"proposal"}`:                     false,
			`{"payload":{},"quorum":1,"type":"proposal"}`:                                                                             false,
			`[]`: false, `null`: false,
		},
		"respond": {
			`{"confidence":0.5,"proposal_id":"` + id + `","response_type":"endorse"}`:                                                  true,
			`{"confidence":1,"domain_authority":0,"proposal_id":"` + id + `","reason":"","response_type":"challenge","trust_score":1}`: true,
			`{"confidence":1.1,"proposal_id":"` + id + `","response_type":"endorse"}`:                                                  false,
			`{"confidence":"1","proposal_id":"` + id + `","response_type":"endorse"}`:                                                  false,
			`{"confidence":1,"proposal_id":"` + id + `","response_type":"abstain"}`:                                                    false,
			`{"confidence":1,"proposal_id":"` + id + `","reason":null,"response_type":"endorse"}`:                                      false,
			`{"confidence":1,"proposal_id":"` + id + `","reason":"` + long + `","response_type":"endorse"}`:                            false,
			`{"confidence":1,"proposal_id":"` + id + `"}`:                                                                              false,
			`{"proposal_id":"` + id + `","response_type":"endorse"}`:                                                                   false,
			`{"confidence":1,"response_type":"endorse"}`:                                                                               false,
		},
		"escalate": {
			`{"proposal_id":"` + id + `"}`:                                           true,
			`{"note":"n","policy":"p","proposal_id":"` + id + `","responsible":"r"}`: true,
			`{"policy":"","proposal_id":"` + id + `"}`:                               false,
			`{"note":"` + long + `","proposal_id":"` + id + `"}`:                     false,
			`{}`: false,
		},
		"resolve": {
			`{"outcome":"approved","proposal_id":"` + id + `"}`:            true,
			`{"note":"n","outcome":"rejected","proposal_id":"` + id + `"}`: true,
			`{"outcome":"expired","proposal_id":"` + id + `"}`:             false,
			`{"note":1,"outcome":"rejected","proposal_id":"` + id + `"}`:   false,
			`{"proposal_id":"` + id + `"}`:                                 false,
		},
		"configure": {
			`{}`: true,
			`{"escalate":[{"domain":"risk.*","policy":"p"}],"hypotheses":"respond"}`: true,
			`{"escalate":[]}`:                            true,
			`{"escalate":[{"domain":"risk.*"}]}`:         false,
			`{"escalate":[{"domain":"*","policy":"p"}]}`: false,
			`{"escalate":null}`:                          false,
			`{"hypotheses":""}`:                          false,
		},
	} {
		schema, err := acp.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { machinetest.Cases(t, schema, decoders[name], cases) })
	}
}

func TestBodiesEncodeToWhatDecodes(t *testing.T) {
	text := canonical(t, acp.SubmitBody{Type: acp.ProposalType, Domain: "d", Payload: json.RawMessage(`{}`), Quorum: 2, ExpiresInMS: 5})
	if b, err := acp.DecodeSubmit(text); err != nil || b.Quorum != 2 || b.ExpiresInMS != 5 {
		t.Fatalf("%s: %+v, %v", text, b, err)
	}
	half, err := acp.ParseDecimal("0.5")
	if err != nil {
		t.Fatal(err)
	}
	text = canonical(t, acp.RespondBody{ProposalID: anyID, ResponseType: acp.Endorse, Confidence: half, TrustScore: &half})
	if b, err := acp.DecodeRespond(text); err != nil || b.Confidence != half && b.Confidence.Cmp(half) != 0 || b.TrustScore == nil || b.DomainAuthority != nil {
		t.Fatalf("%s: %+v, %v", text, b, err)
	}
}

func FuzzBodies(f *testing.F) {
	f.Add(`{"domain":"d","expires_at":"2035-01-15T10:00:00Z","payload":{},"quorum_policy":{"threshold":0.5,"type":"weighted"},"type":"proposal"}`)
	f.Add(`{"confidence":0.5,"domain_authority":1,"proposal_id":"01HXYZ0000000000000000ABCD","response_type":"endorse"}`)
	f.Add(`{"escalate":[{"domain":"risk.*","policy":"p"}],"hypotheses":"respond"}`)
	f.Add(`{"note":"n","outcome":"approved","proposal_id":"01HXYZ0000000000000000ABCD","policy":"p"}`)
	machinetest.FuzzDecoders(f, acp.Schema, decoders)
}

func FuzzWire(f *testing.F) {
	compiled := wireSchemas(f)
	for _, c := range []string{
		`{"schema_version":"1.0","proposal_id":"01HXYZ0000000000000000ABCD","type":"proposal","domain":"d","author":"a","payload":{},"status":"pending","responses":[],"quorum":2.0,"created_at":"2025-01-15T10:00:00.5Z","expires_at":null,"resolution":null}`,
		`{"schema_version":"1.0","participant_id":"p","response_type":"endorse","confidence":0.92,"domain_authority":0.95,"trust_score":0.88,"weight":0.7697,"reason":null,"timestamp":"2016-12-31T23:59:60Z"}`,
		`{"schema_version":"1.0","event_id":"01HXYZ0000000000000000ABCD","event_type":"decision","proposal_id":"01HXYZ0000000000000000ABCD","domain":"d","outcome":"approved","trigger":"quorum","votes_for":1.5,"votes_against":5e-324,"decided_at":"2025-01-15t10:00:00+00:00","exact":{"votes_for":"1.5000000000000000001"}}`,
	} {
		f.Add(c)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for kind, pair := range compiled {
			again, err := recode(kind, []byte(text))
			if err != nil {
				continue
			}
			if err := machinetest.Valid(t, pair[1], []byte(text)); err != nil {
				t.Fatalf("%s takes what Appendix B refuses: %s: %v", kind, text, err)
			}
			twice, err := recode(kind, again)
			if err != nil || !bytes.Equal(again, twice) {
				t.Fatalf("%s is not stable: %s, then %s (%v)", kind, again, twice, err)
			}
		}
	})
}

func recode(kind string, text []byte) ([]byte, error) {
	var v any
	var err error
	switch kind {
	case "proposal":
		v, err = acp.DecodeProposal(text)
	case "response":
		v, err = acp.DecodeResponse(text)
	case "resolution":
		v, err = acp.DecodeResolution(text)
	default:
		v, err = acp.DecodeDecisionEvent(text)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
