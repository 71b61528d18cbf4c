package node

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/registry"
)

type object = map[string]any

// reply is what the public door answers to one request.
type reply struct {
	Status int // HTTP
	Result json.RawMessage
	Error  *struct {
		Message string
		Data    struct{ Code, Fix string }
	}
}

// yard is a cluster of one node with agents, a pending and a settled proposal,
// and rounds that are open, closed and frozen.
type yard struct {
	*solo
	agents                   map[string]*client.Identity
	rotated                  sign.Key // eve's key before
	pending, settled         string   // ACP proposals of ada
	resolved                 string   // an Agora round
	collecting, ended, stuck string   // Deliberatic rounds; stuck is frozen for good
	position                 string   // of ada in collecting
}

// newYard sets the scene. The node has lost its PBFT journal, so that it signs
// nothing and a frozen round stays frozen.
func newYard(t testing.TB) *yard {
	y := &yard{solo: founded(t), agents: map[string]*client.Identity{}}
	y.start()
	y.stop()
	write(t, y.solo, bftFile, nil)
	y.start()
	for _, name := range []string{"ada", "ben", "cyd", "old", "eve", "nat"} {
		y.register(name)
		if name != "nat" { // who holds no grant
			y.do("op", "registry.grant", registry.Grant{Principal: name, Pattern: "ops.*", Authority: registry.NewDecimal("0.8"), Trust: registry.NewDecimal("0.9")})
		}
	}
	y.do("op", "registry.revoke", registry.Revoke{ID: "old", Reason: "left"})
	y.rotate("eve")
	y.pending = y.do("ada", "acp.submit", proposal("proposal")).ActionID
	y.settled = y.do("ada", "acp.submit", proposal("observation")).ActionID
	y.resolved = y.do("ada", "agora.propose", object{"action": object{"type": "deploy"}, "voters": []string{"ada", "ben"},
		"quorum": object{"type": "fraction", "value": "1/2"}, "auto_evaluate": true}).ActionID
	y.do("ada", "agora.vote", object{"round_id": y.resolved, "choice": "yes"})
	y.setRounds()
	return y
}

func (y *yard) register(name string) {
	y.Helper()
	id, err := client.NewIdentity(name)
	y.must(err)
	id.Cluster = y.node.Cluster()
	body, err := registry.NewRegister(id.Cluster, "op", name, machine.Agent, "", id.Key())
	y.must(err)
	y.do("op", "registry.register", body)
	y.agents[name] = id
}

func (y *yard) rotate(name string) {
	y.Helper()
	next, err := client.NewIdentity(name)
	y.must(err)
	next.Cluster = y.node.Cluster()
	body, err := registry.NewRotate(next.Cluster, name, next.Key())
	y.must(err)
	y.do(name, "registry.rotate", body)
	y.rotated, y.agents[name] = y.agents[name].Key(), next
}

func proposal(kind string) object {
	return object{"type": kind, "domain": "ops.storage", "payload": object{"action": "deploy"}, "quorum": 2, "expires_in_ms": 3_600_000}
}

// setRounds opens three rounds; one is decided, one is frozen.
func (y *yard) setRounds() {
	y.Helper()
	three := []string{"ada", "ben", "cyd"}
	open := func() string {
		return y.do("ada", "deliberatic.open", object{"title": "Where to?", "domain": "ops.storage", "participants": three,
			"windows": object{"collect_ms": 3_600_000, "confirm_ms": 3_600_000, "evidence_ms": 3_600_000}}).ActionID
	}
	done := func(round string) {
		for _, who := range three {
			y.do(who, "deliberatic.done", object{"round": round})
		}
	}
	y.collecting = open()
	y.position = y.do("ada", "deliberatic.position", object{"round": y.collecting, "answer": "north"}).ActionID

	y.ended = open()
	winner := y.do("ada", "deliberatic.position", object{"round": y.ended, "answer": "north"}).ActionID
	done(y.ended)
	for _, who := range three[:2] {
		y.do(who, "deliberatic.confirm", object{"round": y.ended, "winner": winner, "accept": true})
	}

	y.stuck = open()
	y.do("ada", "deliberatic.position", object{"round": y.stuck, "answer": "north"})
	y.do("ben", "deliberatic.position", object{"round": y.stuck, "answer": "south"})
	done(y.stuck) // too close to call
	done(y.stuck) // and nobody has more evidence
}

func (y *yard) who(name string) *client.Identity {
	if name == "op" {
		return y.operator
	}
	return y.agents[name]
}

func (y *yard) do(who, kind string, body any) client.Answer {
	y.Helper()
	a, err := y.as(y.who(who)).Do(y.ctx, kind, body)
	if err != nil {
		y.Fatalf("%s by %s: %v", kind, who, err)
	}
	return a
}

// post sends a body to the public door as it is.
func (y *yard) post(body, bearer string) reply {
	y.Helper()
	req, err := http.NewRequestWithContext(y.ctx, http.MethodPost, y.node.URL()+"/rpc", strings.NewReader(body))
	y.must(err)
	req.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	res, err := http.DefaultClient.Do(req)
	y.must(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	y.must(err)
	out := reply{Status: res.StatusCode}
	if err := json.Unmarshal(text, &out); err != nil {
		y.Fatalf("the door answered %q: %v", text, err)
	}
	return out
}

func request(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
}

// send signs an action and posts it. change sees it between signing and sending.
func (y *yard) send(who, kind string, body any, change func(*machine.Action)) reply {
	y.Helper()
	return y.sendUnder(y.who(who), newULID(time.Now()), kind, body, change)
}

func (y *yard) sendUnder(id *client.Identity, ulid, kind string, body any, change func(*machine.Action)) reply {
	y.Helper()
	a, err := id.Key().Sign(y.node.Cluster(), ulid, kind, id.ID, body)
	y.must(err)
	if change != nil {
		change(&a)
	}
	text, err := json.Marshal(a)
	y.must(err)
	return y.post(request(kind, string(text)), "")
}

// byHand sends an action whose body is this very text, signed over
// its canonical form where there is one and over the text itself otherwise.
func (y *yard) byHand(who, kind, body string) reply {
	y.Helper()
	return y.members(who, kind, body, nil)
}

// members is byHand with more members beside the action's own.
func (y *yard) members(who, kind, body string, more map[string]string) reply {
	y.Helper()
	id := y.who(who)
	list := map[string]string{"cluster": quote(y.node.Cluster()), "id": quote(newULID(time.Now())), "kind": quote(kind), "actor": quote(who),
		"kid": quote(id.Key().KID()), "v": "1", "body": body}
	for name, value := range more {
		if delete(list, strings.ToLower(name)); value != "" {
			list[name] = value
		}
	}
	payload := []byte(join(list))
	if text, err := canon.Canonicalize(payload); err == nil {
		payload = text
	}
	sig, err := id.Key().Detached(sign.TypAction, payload)
	y.must(err)
	list["sig"] = quote(sig)
	return y.post(request(kind, join(list)), "")
}

func join(members map[string]string) string {
	var parts []string
	for name, value := range members {
		parts = append(parts, `"`+name+`":`+value)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func quote(s string) string { return string(canon.MustMarshal(s)) }

func newULID(at time.Time) string {
	return ulid.MustNew(ulid.Timestamp(at), ulid.DefaultEntropy()).String()
}

// refuse sends something and checks its refusal: the code, a sentence, what
// to do, and that no machine's state has changed. What never reaches the
// log leaves that alone too.
func (y *yard) refuse(t *testing.T, code string, ordered bool, send func() reply) {
	t.Helper()
	before, head := y.machines(), y.head()
	r := send()
	switch {
	case r.Error == nil:
		t.Errorf("accepted: %s", r.Result)
	case r.Error.Data.Code != code:
		t.Errorf("refused with %s (%s), want %s", r.Error.Data.Code, r.Error.Message, code)
	case len(strings.Fields(r.Error.Message)) < 3 || len(strings.Fields(r.Error.Data.Fix)) < 2 || strings.HasPrefix(r.Error.Data.Fix, "nothing can be done"):
		t.Errorf("%s says too little: %q, %q", code, r.Error.Message, r.Error.Data.Fix)
	}
	if y.machines() != before {
		t.Error("the state has changed")
	}
	if now := y.head(); !ordered && now != head {
		t.Errorf("the log has grown by %d entries", now.Seq-head.Seq)
	} else if ordered && now.Seq != head.Seq+1 {
		t.Errorf("the log has grown by %d entries, not one", now.Seq-head.Seq)
	}
}

// in is the same yard for a part of the test.
func (y yard) in(t *testing.T) *yard {
	part := *y.solo
	part.TB = t
	y.solo = &part
	return &y
}

// flip changes the first bit of a JWS's signature.
func flip(jws string) string {
	at := strings.LastIndexByte(jws, '.') + 1
	other := byte('A')
	if jws[at] == other {
		other = 'Q'
	}
	return jws[:at] + string(other) + jws[at+1:]
}
