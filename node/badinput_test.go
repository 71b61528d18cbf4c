package node

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
)

func TestBadInputIsRefusedWithACodeASentenceAndAFixAndChangesNothing(t *testing.T) {
	y := newYard(t)
	for name, check := range map[string]func(*testing.T, *yard){
		"at the door": badAtTheDoor, "by the state machine": badForTheStateMachine, "by who may send it": notYours,
		"reads": badReads, "a retry gets the first answer": retries,
	} {
		t.Run(name, func(t *testing.T) { check(t, y.in(t)) })
	}
}

// badAtTheDoor is what is refused before it is ordered.
func badAtTheDoor(t *testing.T, y *yard) {
	stranger, err := client.NewIdentity("zed")
	y.must(err)
	respond := object{"proposal_id": y.pending, "response_type": "endorse", "confidence": 0.5}
	body := func(confidence string) string {
		return fmt.Sprintf(`{"proposal_id":%q,"response_type":"endorse","confidence":%s}`, y.pending, confidence)
	}
	submit := func(payload string) string {
		return fmt.Sprintf(`{"type":"observation","domain":"ops.storage","payload":{"x":%s}}`, payload)
	}
	another, err := y.agents["ben"].Key().Sign(y.node.Cluster(), newULID(time.Now()), "acp.respond", "ben", object{"proposal_id": y.pending, "response_type": "challenge", "confidence": 0.5})
	y.must(err)
	for _, c := range []struct {
		name, code string
		send       func() reply
	}{
		{"an unknown agent", machine.CodeUnknownActor, func() reply { return y.sendUnder(stranger, newULID(time.Now()), "acp.respond", respond, nil) }},
		{"a revoked agent", machine.CodeRevoked, func() reply { return y.send("old", "acp.respond", respond, nil) }},
		{"a key that was rotated away", machine.CodeRevoked, func() reply {
			return y.sendUnder(client.IdentityOf("", "eve", y.rotated), newULID(time.Now()), "acp.respond", respond, nil)
		}},
		{"a key of somebody else", machine.CodeBadSignature, func() reply {
			return y.sendUnder(client.IdentityOf("", "ben", y.agents["cyd"].Key()), newULID(time.Now()), "acp.respond", respond, nil)
		}},
		{"a signature with a bit flipped", machine.CodeBadSignature, func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Sig = flip(a.Sig) })
		}},
		{"the signature of another action", machine.CodeBadSignature, func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Sig = another.Sig })
		}},
		{"a body changed after signing", machine.CodeBadSignature, func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Body = another.Body })
		}},
		{"an actor changed after signing", machine.CodeBadSignature, func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Actor = "cyd" })
		}},
		{"no signature", machine.CodeBadSignature, func() reply { return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Sig = "" }) }},
		{"another cluster", machine.CodeWrongCluster, func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Cluster = strings.Repeat("0", 64) })
		}},
		{"a kind under another kind's method", "kind_mismatch", func() reply {
			return y.send("ben", "acp.respond", respond, func(a *machine.Action) { a.Kind = "acp.submit" })
		}},
		{"a kind that no machine takes", "method_not_found", func() reply { return y.send("ben", "acp.rescind", respond, nil) }},
		{"an id that is no ULID", machine.CodeMalformed, func() reply { return y.sendUnder(y.agents["ben"], "1", "acp.respond", respond, nil) }},

		{"JSON that breaks off", "not_json", func() reply { return y.post(request("acp.respond", `{"actor":`), "") }},
		{"no JSON", "not_json", func() reply { return y.post("hello", "") }},
		{"nothing", "not_json", func() reply { return y.post("", "") }},
		{"more than 1 MiB", "too_large", func() reply { return y.byHand("ben", "acp.submit", submit(quote(strings.Repeat("x", 1<<20)))) }},
		{"bytes that are no UTF-8", "invalid_utf8", func() reply { return y.byHand("ben", "acp.submit", submit("\"\xff\"")) }},
		{"half a surrogate pair", "lone_surrogate", func() reply { return y.byHand("ben", "acp.submit", submit(`"\ud800"`)) }},
		{"a member twice", "duplicate_member", func() reply { return y.byHand("ben", "acp.submit", submit(`1,"x":2`)) }},
		{"a member twice, once escaped", "duplicate_member", func() reply { return y.byHand("ben", "acp.submit", submit(`{"member":1,"m\u0065mber":2}`)) }},
		{"a member of the action twice, once escaped", "duplicate_member", func() reply {
			return y.members("ben", "acp.respond", body("0.5"), map[string]string{`b\u006fdy`: "{}"})
		}},
		{"nesting of 70 levels", "too_deep", func() reply {
			return y.byHand("ben", "acp.submit", submit(strings.Repeat("[", 70)+strings.Repeat("]", 70)))
		}},
		{"NaN", "not_json", func() reply { return y.byHand("ben", "acp.respond", body("NaN")) }},
		{"Infinity", "not_json", func() reply { return y.byHand("ben", "acp.respond", body("-Infinity")) }},
		{"1e400", "number_overflow", func() reply { return y.byHand("ben", "acp.respond", body("1e400")) }},
		{"an integer beyond 2^53", machine.CodeMalformed, func() reply { return y.byHand("ben", "acp.submit", submit("9007199254740993")) }},
		{"an integer beyond 2^53 in another spelling", "integer_out_of_range", func() reply { return y.byHand("ben", "acp.submit", submit("1e20")) }},
		{"an unknown member of the action", machine.CodeMalformed, func() reply { return y.members("ben", "acp.respond", body("0.5"), map[string]string{"note": `"x"`}) }},
		{"a member of the action in the wrong case", machine.CodeMalformed, func() reply { return y.members("ben", "acp.respond", "", map[string]string{"Body": body("0.5")}) }},
		{"an action without kid", machine.CodeBadSignature, func() reply { return y.members("ben", "acp.respond", body("0.5"), map[string]string{"kid": ""}) }},
		{"an unknown member of the request", "invalid_request", func() reply {
			return y.post(`{"jsonrpc":"2.0","id":1,"method":"acp.respond","params":{},"note":1}`, "")
		}},
		{"a member of the request in the wrong case", "invalid_request", func() reply { return y.post(`{"jsonrpc":"2.0","id":1,"Method":"acp.respond","params":{}}`, "") }},
		{"params by position", "params_by_name", func() reply { return y.post(request("acp.respond", "[1]"), "") }},
	} {
		t.Run(c.name, func(t *testing.T) { y.refuse(t, c.code, false, c.send) })
	}
}

// badForTheStateMachine is what is ordered and then refused by every node alike.
func badForTheStateMachine(t *testing.T, y *yard) {
	by := func(who, kind string, body any) func() reply {
		return func() reply { return y.send(who, kind, body, nil) }
	}
	hand := func(who, kind, format string, args ...any) func() reply {
		return func() reply { return y.byHand(who, kind, fmt.Sprintf(format, args...)) }
	}
	respond := func(more object) object {
		b := object{"proposal_id": y.pending, "response_type": "endorse", "confidence": 0.5}
		for k, v := range more {
			b[k] = v
		}
		return b
	}
	challenge := func(target string, item object) object {
		b := object{"round": y.collecting, "target": target}
		if item != nil {
			b["evidence"] = []object{item}
		}
		return b
	}
	item := func(value, width float64) object {
		return object{"type": "performance", "value": value, "confidence": width, "timestamp": "2026-01-15T10:00:00Z"}
	}
	first := y.do("ben", "acp.submit", proposal("proposal"))
	id := func(ago time.Duration) func() reply {
		return func() reply {
			return y.sendUnder(y.agents["ben"], newULID(time.Now().Add(-ago)), "acp.respond", respond(nil), nil)
		}
	}
	for _, c := range []struct {
		name, code string
		send       func() reply
	}{
		{"a proposal without a grant", machine.CodeNoGrant, by("nat", "acp.submit", proposal("proposal"))},
		{"a proposal outside the granted domain", machine.CodeNoGrant, by("ben", "acp.submit", object{"type": "observation", "domain": "risk", "payload": object{}})},
		{"a response without a grant", machine.CodeNoGrant, by("nat", "acp.respond", respond(nil))},
		{"an authority above the grant", machine.CodeGrantExceeded, by("ben", "acp.respond", respond(object{"domain_authority": 0.81}))},
		{"a trust above the grant", machine.CodeGrantExceeded, by("ben", "acp.respond", respond(object{"trust_score": 1}))},
		{"a confidence above 1", machine.CodeOutOfRange, by("ben", "acp.respond", respond(object{"confidence": 1.5}))},
		{"a confidence below 0", machine.CodeOutOfRange, by("ben", "acp.respond", respond(object{"confidence": -0.1}))},
		{"a width of -1", machine.CodeOutOfRange, by("ben", "deliberatic.challenge", challenge(y.position, item(0.5, -1)))},
		{"a value above 1", machine.CodeOutOfRange, by("ben", "deliberatic.challenge", challenge(y.position, item(1.5, 0.1)))},
		{"a number that a double cannot tell from 1", machine.CodeOutOfRange, hand("ben", "acp.submit", `{"type":"proposal","domain":"ops.a","payload":{},"quorum":1,"expires_in_ms":1e15}`)},
		{"an unknown member of a body", machine.CodeMalformed, by("ben", "acp.respond", respond(object{"note": "x"}))},
		{"a member of a body in the wrong case", machine.CodeMalformed, hand("ben", "acp.respond", `{"Proposal_id":%q,"response_type":"endorse","confidence":0.5}`, y.pending)},
		{"a member of a body in both cases", machine.CodeMalformed, by("ben", "acp.respond", respond(object{"Confidence": 0.9}))},
		{"an unknown member inside a body's lists", machine.CodeMalformed, by("ben", "deliberatic.challenge", challenge(y.position, object{"type": "performance", "value": 0.5, "width": 0.1, "timestamp": "2026-01-15T10:00:00Z"}))},
		{"an unknown member of an operator's body", machine.CodeMalformed, by("op", "registry.revoke", object{"id": "ben", "reason": "x", "note": "x"})},
		{"a grant above 1", machine.CodeOutOfRange, by("op", "registry.grant", object{"principal": "ben", "pattern": "ops.*", "authority": "1.01", "trust": "1"})},
		{"an invitation for a year", machine.CodeOutOfRange, by("op", "cluster.invite", object{"key": strings.Repeat("A", 43), "role": "observer", "expires_in_ms": 31_536_000_000})},
		{"null for a value", machine.CodeMalformed, by("ben", "acp.respond", respond(object{"reason": nil}))},
		{"an empty body", machine.CodeMalformed, by("ben", "deliberatic.challenge", object{})},

		{"an attack on one's own position", "self_attack", by("ada", "deliberatic.challenge", challenge(y.position, nil))},
		{"support of one's own position", "self_support", by("ada", "deliberatic.support", challenge(y.position, nil))},
		{"a response to one's own proposal", "self_response", by("ada", "acp.respond", respond(nil))},
		{"an attack on an argument that is not there", "missing_argument", by("ben", "deliberatic.challenge", challenge(y.settled, nil))},
		{"an attack on an argument of another round", "missing_argument", by("ben", "deliberatic.challenge", object{"round": y.collecting, "target": y.resolved})},
		{"an argument in no round", machine.CodeNotFound, by("ben", "deliberatic.done", object{"round": y.settled})},
		{"a response to no proposal", machine.CodeNotFound, by("ben", "acp.respond", respond(object{"proposal_id": y.collecting}))},
		{"a word in a closed round", "round_closed", by("ben", "deliberatic.done", object{"round": y.ended})},
		{"a position in a closed round", "round_closed", by("cyd", "deliberatic.position", object{"round": y.ended, "answer": "west"})},
		{"evidence in a frozen round", "round_frozen", by("cyd", "deliberatic.done", object{"round": y.stuck})},
		{"a position in a frozen round", "round_frozen", by("cyd", "deliberatic.position", object{"round": y.stuck, "answer": "west"})},
		{"a response to a settled proposal", "not_pending", by("ben", "acp.respond", respond(object{"proposal_id": y.settled}))},
		{"a vote in a resolved round", "round_already_resolved", by("ben", "agora.vote", object{"round_id": y.resolved, "choice": "no"})},

		{"a used id with another body", machine.CodeIDReused, func() reply {
			return y.sendUnder(y.agents["ben"], first.ActionID, "acp.submit", proposal("observation"), nil)
		}},
		{"a used id with another kind", machine.CodeIDReused, func() reply {
			return y.sendUnder(y.agents["ben"], first.ActionID, "acp.respond", respond(nil), nil)
		}},
		{"an id from before the window", machine.CodeIDTooOld, id(2 * time.Hour)},
		{"an id from the future", machine.CodeIDFromFuture, id(-time.Hour)},
	} {
		t.Run(c.name, func(t *testing.T) { y.refuse(t, c.code, true, c.send) })
	}
}

// notYours is what somebody else may do.
func notYours(t *testing.T, y *yard) {
	kinds := 0
	for _, k := range y.node.Kinds() {
		if slices.Contains(k.By, machine.Agent) {
			continue
		}
		kinds++
		t.Run(k.Name+" by an agent", func(t *testing.T) {
			y.refuse(t, machine.CodeNotAuthorized, true, func() reply { return y.send("ada", k.Name, object{}, nil) })
		})
		if !slices.Contains(k.By, machine.Operator) {
			t.Run(k.Name+" by an operator", func(t *testing.T) {
				y.refuse(t, machine.CodeNotAuthorized, true, func() reply { return y.send("op", k.Name, object{}, nil) })
			})
		}
	}
	if kinds < 10 {
		t.Errorf("only %d kinds are closed to agents", kinds)
	}
	for kind, body := range map[string]object{ // open to agents, but not for everything
		"registry.rotate": {"id": "ben", "jwk": y.agents["nat"].PublicJWK(), "proof": "e30.." + strings.Repeat("A", 86)},
		"registry.revoke": {"id": "ben", "reason": "rivalry"},
	} {
		t.Run(kind+" of another agent", func(t *testing.T) {
			y.refuse(t, machine.CodeNotAuthorized, true, func() reply { return y.send("ada", kind, body, nil) })
		})
	}
	node := client.IdentityOf("", y.node.ID(), y.node.keys.Identity)
	for _, kind := range []string{"acp.submit", "registry.register", "deliberatic.open", membership.KindInvite} {
		t.Run(kind+" by a node", func(t *testing.T) {
			y.refuse(t, machine.CodeNotAuthorized, true, func() reply { return y.sendUnder(node, newULID(time.Now()), kind, object{}, nil) })
		})
	}
}

func TestAnInvitationThatIsUsedOrExpiredIsRefusedThroughThePublicDoorToo(t *testing.T) {
	y := &yard{solo: founded(t)}
	y.start()
	used, expired, open := y.invite(membership.RoleObserver, time.Hour), y.invite(membership.RoleObserver, time.Millisecond), y.invite(membership.RoleObserver, time.Hour)
	y.must(Join(y.ctx, y.stranger(t), used))
	await(y.solo, func() bool { return y.invited(expired) == membership.Expired })
	join := func(inv membership.Invitation, change func(*membership.Join)) func() reply {
		return func() reply {
			keys, err := NewKeys(rand.Reader)
			y.must(err)
			body, err := inv.Join(keys.Identity.Public(), keys.PBFT.Public(), keys.Attest.Public(), nil)
			y.must(err)
			if change != nil {
				change(&body)
			}
			return y.sendUnder(client.IdentityOf("", keys.ID(), keys.Identity), newULID(time.Now()), membership.KindJoin, body, nil)
		}
	}
	for _, c := range []struct {
		name, code string
		send       func() reply
	}{
		{"used", membership.CodeInvitationUsed, join(used, nil)},
		{"expired", membership.CodeInvitationExpired, join(expired, nil)},
		{"never given", membership.CodeInvitationUnknown, join(membership.Invitation{Genesis: y.node.Cluster(), Seed: strings.Repeat("A", 43), Role: membership.RoleVoter}, nil)},
		{"for another role", machine.CodeNotAuthorized, join(as(open, membership.RoleVoter), nil)},
		{"for another cluster", machine.CodeBadSignature, join(elsewhere(open), nil)},
		{"for another node's keys", machine.CodeBadSignature, join(open, func(b *membership.Join) { b.AttestKey, b.PBFTKey = b.PBFTKey, b.AttestKey })},
	} {
		t.Run(c.name, func(t *testing.T) { y.refuse(t, c.code, true, c.send) })
	}
}

// badReads is reading without the right, and asking what makes no sense.
func badReads(t *testing.T, y *yard) {
	params := fmt.Sprintf(`{"proposal_id":%q}`, y.pending)
	now := time.Now()
	make := func(key sign.Key, cluster, who string, at time.Time) string {
		text, err := token.Make(key, cluster, who, at, 10*time.Minute)
		y.must(err)
		return text
	}
	key := func(who string) sign.Key { return y.who(who).Key() }
	good := make(key("ada"), y.node.Cluster(), "ada", now)
	if r := y.post(request("acp.get", params), good); r.Error != nil {
		t.Fatalf("a good token is refused: %+v", r.Error)
	}
	for _, c := range []struct{ name, code, bearer string }{
		{"none", token.CodeMissing, ""},
		{"no token", token.CodeMalformed, "x"},
		{"an expired one", token.CodeExpired, make(key("ada"), y.node.Cluster(), "ada", now.Add(-time.Hour))},
		{"one from the future", token.CodeNotYet, make(key("ada"), y.node.Cluster(), "ada", now.Add(time.Hour))},
		{"one for another cluster", machine.CodeWrongCluster, make(key("ada"), strings.Repeat("0", 64), "ada", now)},
		{"one of a revoked agent", machine.CodeRevoked, make(key("old"), y.node.Cluster(), "old", now)},
		{"one by a key that was rotated away", machine.CodeRevoked, make(y.rotated, y.node.Cluster(), "eve", now)},
		{"one of an unknown agent", machine.CodeUnknownActor, make(key("ada"), y.node.Cluster(), "zed", now)},
		{"one by another agent's key", machine.CodeBadSignature, make(key("ben"), y.node.Cluster(), "ada", now)},
		{"one with a bit flipped", machine.CodeBadSignature, flip(good)},
	} {
		for _, method := range []string{"acp.get", "agent.inbox", "cluster.guilt", "cluster.peers"} {
			t.Run(c.name+" for "+method, func(t *testing.T) {
				y.refuse(t, c.code, false, func() reply {
					if method != "acp.get" {
						return y.post(request(method, "{}"), c.bearer)
					}
					return y.post(request(method, params), c.bearer)
				})
			})
		}
	}
	for name, c := range map[string]struct{ code, method, params string }{
		"an unknown parameter":         {machine.CodeMalformed, "acp.get", fmt.Sprintf(`{"proposal_id":%q,"note":1}`, y.pending)},
		"a parameter in another case":  {machine.CodeMalformed, "acp.get", fmt.Sprintf(`{"Proposal_id":%q}`, y.pending)},
		"a stale that is no truth":     {machine.CodeMalformed, "acp.get", fmt.Sprintf(`{"proposal_id":%q,"stale":1}`, y.pending)},
		"a wait of a week":             {machine.CodeOutOfRange, "agent.inbox", `{"wait_ms":604800000}`},
		"a proposal that is not there": {machine.CodeNotFound, "acp.get", fmt.Sprintf(`{"proposal_id":%q}`, y.collecting)},
		"a query that is none":         {"method_not_found", "acp.peek", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			y.refuse(t, c.code, false, func() reply { return y.post(request(c.method, c.params), good) })
		})
	}
}

func retries(t *testing.T, y *yard) {
	c := y.as(y.agents["ben"])
	fresh := y.do("ada", "acp.submit", proposal("proposal")).ActionID
	for name, body := range map[string]object{
		"of an accepted action": {"proposal_id": fresh, "response_type": "endorse", "confidence": 0.5},
		"of a refused action":   {"proposal_id": y.settled, "response_type": "endorse", "confidence": 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := c.Sign(y.ctx, "acp.respond", body)
			y.must(err)
			first, refused := c.Submit(y.ctx, a)
			if name == "of an accepted action" != (refused == nil) {
				t.Fatalf("%+v, %v", first, refused)
			}
			before := y.machines()
			y.do("cyd", "acp.submit", proposal("observation")) // time goes on
			after := y.machines()
			if before == after {
				t.Fatal("the hash does not see an accepted action")
			}
			again, err := c.Submit(y.ctx, a)
			if again.Seq != first.Seq || again.StampMS != first.StampMS || !bytes.Equal(again.Result, first.Result) || client.CodeOf(err) != client.CodeOf(refused) {
				t.Errorf("first %+v, %v; again %+v, %v", first, refused, again, err)
			}
			if y.machines() != after {
				t.Error("the retry has changed the state")
			}
		})
	}
}
