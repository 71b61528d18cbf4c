package deliberation_test

import (
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
)

func TestOpeningIsRefused(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name, code, actor string
		body              obj
	}{
		{"without a title", "malformed", "ann", obj{"title": nil}},
		{"with a blank title", "malformed", "ann", obj{"title": "  "}},
		{"with a long title", "malformed", "ann", obj{"title": long}},
		{"with a long question", "too_large", "ann", obj{"question": strings.Repeat("x", 64<<10+1)}},
		{"by somebody unknown", "unknown_actor", "nobody", nil},
		{"by an agent without a grant", "no_grant", "eve", nil},
		{"by a node", "not_authorized", "n1", nil},
		{"in a domain that is no label", "malformed", "ann", obj{"domain": "risk..x"}},
		{"with neither domain nor participants", "malformed", "ann", obj{"domain": nil}},
		{"with too few participants", "quorum_too_small", "ann", obj{"participants": []string{"ann", "bob"}}},
		{"with too few holders", "quorum_too_small", "op", obj{"domain": "law"}},
		{"below its own minimum", "quorum_too_small", "ann", obj{"minimum": 5}},
		{"with an unknown participant", "unknown_actor", "ann", obj{"participants": []string{"ann", "bob", "nobody"}}},
		{"with a revoked participant", "revoked", "ann", obj{"participants": []string{"ann", "bob", "old"}}},
		{"with a participant without a grant", "no_grant", "ann", obj{"participants": []string{"ann", "bob", "eve"}}},
		{"with a node as participant", "not_authorized", "ann", obj{"participants": []string{"ann", "bob", "n1"}}},
		{"with a participant twice", "malformed", "ann", obj{"participants": []string{"ann", "bob", "ann"}}},
		{"with one option", "out_of_range", "ann", obj{"options": []any{1}}},
		{"with an option twice", "malformed", "ann", obj{"options": []any{obj{"a": 1, "b": 2}, obj{"b": 2, "a": 1}}}},
		{"with huge options", "too_large", "ann", obj{"options": []any{1, strings.Repeat("x", 16<<10+1)}}},
		{"with an unknown rule", "malformed", "ann", obj{"rule": "unanimity"}},
		{"with an unknown end", "malformed", "ann", obj{"on_rejected": "war"}},
		{"with an unknown method", "malformed", "ann", obj{"method": "guess"}},
		{"with an unknown weight method", "malformed", "ann", obj{"weight_method": "guess"}},
		{"with tau twice", "malformed", "ann", obj{"tau": 0.1, "tau_nano": 100_000_000}},
		{"with a negative tau", "out_of_range", "ann", obj{"tau": -0.1}},
		{"with a huge tau_nano", "out_of_range", "ann", obj{"tau_nano": int64(1e12)}},
		{"with gamma 0", "out_of_range", "ann", obj{"gamma_plus": 0}},
		{"with gamma 1", "out_of_range", "ann", obj{"gamma_minus": 1}},
		{"with an empty weight of 2", "out_of_range", "ann", obj{"empty_weight": 2}},
		{"with a minimum of 0", "out_of_range", "ann", obj{"minimum": 0}},
		{"with an endless window", "out_of_range", "ann", obj{"windows": obj{"collect_ms": int64(1) << 40}}},
		{"with no window", "out_of_range", "ann", obj{"windows": obj{"review_ms": 0}}},
		{"with an unknown member", "malformed", "ann", obj{"titel": "x"}},
		{"with null for a value", "malformed", "ann", obj{"rule": []any{nil}}},
		{"with task metadata that is no object", "malformed", "ann", obj{"task": []int{1}}},
		{"with huge task metadata", "too_large", "ann", obj{"task": obj{"x": strings.Repeat("x", 16<<10)}}},
		{"with reviewers and nothing to review", "malformed", "ann", obj{"reviewers": []string{"hal"}}},
		{"with an agent as reviewer", "not_authorized", "ann", obj{"reviewers": []string{"bob"}, "on_rejected": "human"}},
		{"with an unknown reviewer", "unknown_actor", "ann", obj{"reviewers": []string{"who"}, "on_rejected": "human"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.World.Principals["old"] = machine.Principal{ID: "old", Kind: machine.Agent}
			body := obj{"title": "Lend?", "domain": "risk"}
			for k, v := range c.body {
				if v == nil {
					delete(body, k)
				} else {
					body[k] = v
				}
			}
			r.refused(c.code, c.actor, "open", body)
		})
	}
}

func TestArguingIsRefused(t *testing.T) {
	const missing = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	text := strings.Repeat("x", deliberation.MaxText+1)
	item := func(k string, v any) []obj {
		e := evidence(0.5, 0.1)
		if v == nil {
			delete(e[0], k)
		} else {
			e[0][k] = v
		}
		return e
	}
	many := func(n int) []obj {
		var out []obj
		for range n {
			out = append(out, evidence(0.5, 0)...)
		}
		return out
	}
	r := newRig(t)
	round := r.open(obj{"options": []any{"yes", "no", "maybe", "never"}})
	ann := r.position("ann", round, "yes", 0.9)
	bob := r.position("bob", round, "no", 0.5)
	cid := r.do("cid", "challenge", obj{"round": round, "target": ann, "evidence": many(60)}).Argument
	for _, c := range []struct {
		name, code, actor, verb string
		body                    obj
	}{
		{"in no round", "not_found", "ann", "position", obj{"round": missing, "answer": 1}},
		{"in a round of no shape", "not_found", "ann", "done", obj{"round": "x"}},
		{"without a round", "malformed", "ann", "done", obj{}},
		{"by a stranger", "not_a_participant", "eve", "position", obj{"round": round, "answer": "maybe"}},
		{"a second position", "position_exists", "ann", "position", obj{"round": round, "answer": "maybe"}},
		{"an equal answer", "same_answer", "dan", "position", obj{"round": round, "answer": "yes"}},
		{"an answer outside the options", "unknown_option", "dan", "position", obj{"round": round, "answer": "Yes"}},
		{"no answer", "malformed", "dan", "position", obj{"round": round}},
		{"a huge answer", "too_large", "dan", "position", obj{"round": round, "answer": strings.Repeat("x", 16<<10)}},
		{"a long text", "too_large", "dan", "position", obj{"round": round, "answer": "maybe", "text": text}},
		{"facts that are no object", "malformed", "dan", "position", obj{"round": round, "answer": "maybe", "facts": "x"}},
		{"a probability above 1", "out_of_range", "dan", "position", obj{"round": round, "answer": "maybe", "probability": 1.01}},
		{"an attack on one's own position", "self_attack", "ann", "challenge", obj{"round": round, "target": ann}},
		{"an attack on one's own challenge", "self_attack", "cid", "challenge", obj{"round": round, "target": cid}},
		{"support of one's own position", "self_support", "ann", "support", obj{"round": round, "target": ann}},
		{"a missing target", "missing_argument", "dan", "challenge", obj{"round": round, "target": missing}},
		{"a target of no shape", "missing_argument", "dan", "support", obj{"round": round, "target": "x"}},
		{"no target", "malformed", "dan", "support", obj{"round": round}},
		{"a long text of a challenge", "too_large", "dan", "challenge", obj{"round": round, "target": ann, "text": text}},
		{"the same challenge again", "already_argued", "cid", "challenge", obj{"round": round, "target": ann}},
		{"evidence of no type", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("type", nil)}},
		{"evidence of an unknown type", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("type", "hearsay")}},
		{"evidence without a value", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("value", nil)}},
		{"evidence above 1", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("value", 1.5)}},
		{"evidence without a width", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("confidence", nil)}},
		{"evidence of negative width", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("confidence", -0.1)}},
		{"evidence of no samples", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("sample_size", 0)}},
		{"evidence of half a sample", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("sample_size", 0.5)}},
		{"evidence without a time", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("timestamp", nil)}},
		{"evidence of no day", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("timestamp", "2026-02-30T00:00:00Z")}},
		{"evidence with a comma in its time", "malformed", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("timestamp", "2026-02-20T00:00:00,5Z")}},
		{"evidence from far away", "out_of_range", "dan", "challenge", obj{"round": round, "target": ann, "evidence": item("source", strings.Repeat("x", 513))}},
		{"much evidence", "too_many", "dan", "challenge", obj{"round": round, "target": ann, "evidence": many(65)}},
		{"evidence for another's argument", "not_your_argument", "ann", "evidence", obj{"round": round, "argument": bob, "evidence": many(1)}},
		{"evidence for nothing", "missing_argument", "ann", "evidence", obj{"round": round, "argument": missing, "evidence": many(1)}},
		{"no evidence", "malformed", "ann", "evidence", obj{"round": round, "argument": ann, "evidence": []obj{}}},
		{"more evidence than an argument holds", "too_many", "cid", "evidence", obj{"round": round, "argument": cid, "evidence": many(5)}},
		{"a cross-reference to itself", "self_attack", "ann", "relate", obj{"round": round, "from": ann, "to": ann, "relation": "attack"}},
		{"a supporting cross-reference to itself", "self_support", "ann", "relate", obj{"round": round, "from": ann, "to": ann, "relation": "support"}},
		{"a cross-reference from another's argument", "not_your_argument", "ann", "relate", obj{"round": round, "from": bob, "to": ann, "relation": "attack"}},
		{"a cross-reference to nothing", "missing_argument", "ann", "relate", obj{"round": round, "from": ann, "to": missing, "relation": "attack"}},
		{"a cross-reference of no relation", "malformed", "ann", "relate", obj{"round": round, "from": ann, "to": bob, "relation": "likes"}},
		{"a cross-reference that is a challenge already", "already_argued", "cid", "relate", obj{"round": round, "from": cid, "to": ann, "relation": "attack"}},
		{"a word before there is a winner", "wrong_phase", "ann", "confirm", obj{"round": round, "winner": ann, "accept": true}},
		{"half a word", "malformed", "ann", "confirm", obj{"round": round, "winner": ann}},
		{"two words in one", "malformed", "ann", "confirm", obj{"round": round, "accept": true, "standing": obj{"winners": []string{ann}, "expires_ms": int64(1) << 40}}},
		{"a standing word for nobody", "malformed", "ann", "confirm", obj{"round": round, "standing": obj{"expires_ms": int64(1) << 40}}},
		{"a standing word for a challenge", "missing_argument", "ann", "confirm", obj{"round": round, "standing": obj{"winners": []string{cid}, "expires_ms": int64(1) << 40}}},
		{"a standing word that has expired", "expired", "ann", "confirm", obj{"round": round, "standing": obj{"winners": []string{ann}, "expires_ms": 5}}},
		{"a certificate of an open round", "wrong_phase", "n1", "certify", obj{"round": round, "certificate": obj{}}},
		{"no certificate", "malformed", "n1", "certify", obj{"round": round}},
		{"a review of an open round", "wrong_phase", "op", "review", obj{"round": round}},
		{"an outcome of an open round", "round_not_ended", "op", "outcome", obj{"round": round, "answer": "yes"}},
		{"an outcome that says nothing", "malformed", "op", "outcome", obj{"round": round}},
		{"an outcome told by an agent", "not_authorized", "ann", "outcome", obj{"round": round, "answer": "yes"}},
		{"an outcome told by a human without a grant", "no_grant", "zoe", "outcome", obj{"round": round, "answer": "yes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bench := *r
			bench.t, bench.Bench.T = t, t
			bench.refused(c.code, c.actor, c.verb, c.body)
		})
	}
}

func TestARefusalOfTheSameAnswerNamesThePositionToSupport(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	ann := r.position("ann", round, obj{"rate": 5, "term": 1.0}, 0.9)
	_, err := r.Do("bob", "deliberatic.position", obj{"round": round, "answer": obj{"term": 1, "rate": 5.0}})
	refusal, ok := machine.IsRefusal(err)
	if !ok || refusal.Code != "same_answer" || refusal.Data["support"] != ann {
		t.Fatalf("got %v, data %v", err, refusal.Data)
	}
}

func TestAPairMayAttackAndSupport(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	ann := r.position("ann", round, "yes", 0.9)
	r.do("bob", "challenge", obj{"round": round, "target": ann})
	r.do("bob", "support", obj{"round": round, "target": ann})
	if n := r.view(round).State.Arguments; n != 3 {
		t.Fatalf("%d arguments", n)
	}
}

func TestEveryParticipantHasItsShareOfTheRound(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	target := r.position("ann", round, "yes", 0.9)
	text := strings.Repeat("x", deliberation.MaxText)
	full := map[string]bool{}
	for i := 0; !full["bob"]; i++ { // bob and cid take turns until bob's share is used up
		actor := agents[1+i%2]
		raw, err := r.Do(actor, "deliberatic.challenge", obj{"round": round, "target": target, "text": text})
		if err == nil {
			target = r.answer(raw).Argument
			continue
		}
		if refusal, ok := machine.IsRefusal(err); !ok || refusal.Code != "too_many" || i < 2*14 {
			t.Fatalf("after %d texts: %v", i, err)
		}
		full[actor] = true
	}
	r.do("dan", "challenge", obj{"round": round, "target": target, "text": text})
	if n := r.view(round).State.Bytes; n > deliberation.MaxRoundBytes {
		t.Fatalf("%d bytes", n)
	}
}
