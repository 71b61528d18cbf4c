package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/api/apitest"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a door in front of a backend in memory, and an agent ada.
type house struct {
	t      testing.TB
	b      *apitest.Backend
	key    sign.Key
	bearer string
	url    string
	log    *bytes.Buffer
}

func newHouse(t testing.TB, change func(*Config)) *house {
	t.Helper()
	b := apitest.New()
	b.Actions = []machine.Kind{{Name: "acp.submit", By: []machine.PrincipalKind{machine.Agent}, Summary: "Submit.", Schema: json.RawMessage(`{"type":"object"}`)}}
	b.Reads = []machine.Query{{Name: "acp.get", Summary: "Get.", Schema: json.RawMessage(`{"type":"object","required":["id"],"properties":{"id":{"$ref":"#/$defs/id"}},"$defs":{"id":{"type":"string"}}}`)}}
	h := &house{t: t, b: b, key: b.AddKey(t, "ada"), log: new(bytes.Buffer)}
	h.bearer = apitest.Bearer(t, h.key, "ada")
	cfg := Config{Backend: b, Log: slog.New(slog.NewTextHandler(h.log, nil)), Tokens: token.Verifier{Cluster: apitest.Cluster, Key: b.Key, Now: time.Now}}
	if change != nil {
		change(&cfg)
	}
	handler, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.Close(); http.DefaultClient.CloseIdleConnections() })
	h.url = server.URL
	return h
}

// post sends a body and returns the status and the text of the answer.
func (h *house) post(body string) (int, string) {
	h.t.Helper()
	req, err := http.NewRequest(http.MethodPost, h.url, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if h.bearer != "" {
		req.Header.Set("Authorization", h.bearer)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

type reply struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *rpcError       `json:"error"`
}

// call runs one method.
func (h *house) call(method string, params any) reply {
	h.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
	if err != nil {
		h.t.Fatal(err)
	}
	_, text := h.post(string(body))
	return h.reply(text)
}

func (h *house) reply(text string) reply {
	h.t.Helper()
	var r reply
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		h.t.Fatalf("%v in %s", err, text)
	}
	if (r.Error == nil) == (r.Result == nil) {
		h.t.Fatalf("neither or both of result and error: %s", text)
	}
	if r.Error != nil && (r.Error.Data.Code == "" || r.Error.Data.Fix == "" || !strings.HasSuffix(r.Error.Message, ".")) {
		h.t.Errorf("an error without code, fix or sentence: %s", text)
	}
	return r
}

func (h *house) action(kind string, body any) machine.Action {
	h.t.Helper()
	a, err := h.key.Sign(apitest.Cluster, ulid.Make().String(), kind, "ada", body)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

func TestASignedActionIsItsOwnAuthentication(t *testing.T) {
	h := newHouse(t, nil)
	h.bearer = ""
	r := h.call("acp.submit", h.action("acp.submit", map[string]any{"n": 1, "text": "a < b"}))
	if r.Error != nil {
		t.Fatalf("%+v", r.Error)
	}
	var a api.Answer
	if err := json.Unmarshal(r.Result, &a); err != nil {
		t.Fatal(err)
	}
	if a.Seq != 1 || a.Finality != api.Ordered || string(a.Result) != `{"n":1,"text":"a < b"}` {
		t.Errorf("%s", r.Result)
	}
}

func TestAnActionWrittenWithOtherSpacingIsOrderedInItsCanonicalForm(t *testing.T) {
	h := newHouse(t, nil)
	a := h.action("acp.submit", map[string]any{"n": 1})
	spaced, err := json.MarshalIndent(a, "", "   ")
	if err != nil {
		t.Fatal(err)
	}
	for _, params := range []json.RawMessage{spaced, json.RawMessage(strings.Replace(string(spaced), `"n": 1`, `"n": 1.0`, 1))} {
		_, text := h.post(`{"jsonrpc":"2.0","id":1,"method":"acp.submit","params":` + string(params) + `}`)
		if r := h.reply(text); r.Error != nil {
			t.Errorf("%s: %+v", params, r.Error)
		}
	}
}

func TestARefusalReachesTheCallerWhole(t *testing.T) {
	h := newHouse(t, nil)
	h.b.OnSubmit = func(machine.Action) (any, error) {
		return nil, machine.Refuse("same_answer", "support it instead", "This answer has been given.").With("position", "p1")
	}
	r := h.call("acp.submit", h.action("acp.submit", map[string]any{}))
	if r.Error == nil || r.Error.Number != Refused || r.Error.Data.Code != "same_answer" || r.Error.Data.Fix != "support it instead" || r.Error.Data.Details["position"] != "p1" {
		t.Errorf("%+v", r.Error)
	}
}

func TestWhatIsWrongWithACallIsToldByNumberAndCode(t *testing.T) {
	h := newHouse(t, nil)
	signed := func(change func(*machine.Action)) string {
		a := h.action("acp.submit", map[string]any{})
		change(&a)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return `{"jsonrpc":"2.0","id":1,"method":"acp.submit","params":` + string(text) + `}`
	}
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, c := range map[string]struct {
		body   string
		number int
		code   string
	}{
		"no JSON":              {`{"jsonrpc":`, ParseError, "not_json"},
		"nothing":              {``, ParseError, "not_json"},
		"duplicate member":     {`{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, ParseError, "duplicate_member"},
		"lone surrogate":       {`{"jsonrpc":"2.0","id":"\ud800","method":"x"}`, ParseError, "lone_surrogate"},
		"too deep":             {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":` + deep + `}}`, ParseError, "too_deep"},
		"huge number":          {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1e999}}`, ParseError, "number_overflow"},
		"no object":            {`7`, InvalidRequest, "invalid_request"},
		"unknown member":       {`{"jsonrpc":"2.0","id":1,"method":"x","extra":1}`, InvalidRequest, "invalid_request"},
		"member in other case": {`{"jsonrpc":"2.0","id":1,"Method":"x"}`, InvalidRequest, "invalid_request"},
		"old version":          {`{"jsonrpc":"1.0","id":1,"method":"x"}`, InvalidRequest, "invalid_request"},
		"no version":           {`{"id":1,"method":"x"}`, InvalidRequest, "invalid_request"},
		"no method":            {`{"jsonrpc":"2.0","id":1}`, InvalidRequest, "invalid_request"},
		"id with a fraction":   {`{"jsonrpc":"2.0","id":1.5,"method":"x"}`, InvalidRequest, "invalid_request"},
		"id of a wrong type":   {`{"jsonrpc":"2.0","id":{},"method":"x"}`, InvalidRequest, "invalid_request"},
		"params a string":      {`{"jsonrpc":"2.0","id":1,"method":"x","params":"a"}`, InvalidRequest, "invalid_request"},
		"params by position":   {`{"jsonrpc":"2.0","id":1,"method":"acp.get","params":[1]}`, InvalidParams, "params_by_name"},
		"empty batch":          {`[]`, InvalidRequest, "empty_batch"},
		"large batch":          {`[` + strings.Repeat(`1,`, 100) + `1]`, InvalidRequest, "batch_too_large"},
		"no such method":       {`{"jsonrpc":"2.0","id":1,"method":"acp.nothing"}`, MethodNotFound, "method_not_found"},
		"stale no boolean":     {`{"jsonrpc":"2.0","id":1,"method":"acp.get","params":{"stale":"yes"}}`, InvalidParams, machine.CodeMalformed},
		"status with params":   {`{"jsonrpc":"2.0","id":1,"method":"cluster.status","params":{"a":1}}`, InvalidParams, machine.CodeMalformed},
		"no action":            {`{"jsonrpc":"2.0","id":1,"method":"acp.submit","params":{}}`, InvalidParams, machine.CodeMalformed},
		"another kind":         {signed(func(a *machine.Action) { a.Kind = "acp.respond" }), InvalidParams, "kind_mismatch"},
		"big integer":          {signed(func(a *machine.Action) { a.Body = json.RawMessage(`{"n":9007199254740993}`) }), InvalidParams, machine.CodeMalformed},
		"changed body":         {signed(func(a *machine.Action) { a.Body = json.RawMessage(`{"n":1}`) }), Refused, machine.CodeBadSignature},
		"unknown actor":        {signed(func(a *machine.Action) { a.Actor = "eve" }), Refused, machine.CodeUnknownActor},
		"another cluster":      {signed(func(a *machine.Action) { a.Cluster = strings.Repeat("a", 64) }), Refused, machine.CodeWrongCluster},
		"inbox waits too long": {`{"jsonrpc":"2.0","id":1,"method":"agent.inbox","params":{"wait_ms":60001}}`, InvalidParams, machine.CodeOutOfRange},
	} {
		_, text := h.post(c.body)
		r := h.reply(text)
		if r.Error == nil || r.Error.Number != c.number || r.Error.Data.Code != c.code {
			t.Errorf("%s: %s, want %d %s", name, text, c.number, c.code)
		}
	}
	if len(h.b.Inbox) != 0 {
		t.Error("a bad call changed state")
	}
}

func TestReadsNeedAToken(t *testing.T) {
	h := newHouse(t, nil)
	good := h.bearer
	expired, err := token.Make(h.key, apitest.Cluster, "ada", time.Now().Add(-time.Hour), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	other, err := token.Make(h.key, strings.Repeat("a", 64), "ada", time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := token.Make(h.key, apitest.Cluster, "bob", time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"acp.get", "agent.inbox", "cluster.guilt", "cluster.peers"} {
		for _, c := range []struct {
			bearer string
			number int
			code   string
		}{
			{"", Unauthenticated, token.CodeMissing},
			{"Basic x", Unauthenticated, token.CodeMalformed},
			{"Bearer " + expired, Unauthenticated, token.CodeExpired},
			{"Bearer " + other, Unauthenticated, machine.CodeWrongCluster},
			{"Bearer " + stolen, Unauthenticated, machine.CodeUnknownActor},
			{good[:len(good)-5] + "AAAAA", Unauthenticated, machine.CodeBadSignature},
		} {
			h.bearer = c.bearer
			if r := h.call(method, map[string]any{}); r.Error == nil || r.Error.Number != c.number || r.Error.Data.Code != c.code {
				t.Errorf("%s with %.20q: %+v, want %d %s", method, c.bearer, r.Error, c.number, c.code)
			}
		}
	}
	h.bearer = ""
	for _, method := range []string{"cluster.status", "rpc.discover"} {
		if r := h.call(method, map[string]any{}); r.Error != nil {
			t.Errorf("%s: %+v", method, r.Error)
		}
	}
}

func TestStaleIsTakenOutOfAQuerysParams(t *testing.T) {
	h := newHouse(t, nil)
	for params, want := range map[string]string{
		`{"id":"x"}`:               `{"name":"acp.get","params":{"id":"x"},"principal":"ada","stale":false}`,
		`{"id":"x","stale":true}`:  `{"name":"acp.get","params":{"id":"x"},"principal":"ada","stale":true}`,
		`{"id":"x","stale":false}`: `{"name":"acp.get","params":{"id":"x"},"principal":"ada","stale":false}`,
		`{}`:                       `{"name":"acp.get","params":{},"principal":"ada","stale":false}`,
	} {
		if r := h.call("acp.get", json.RawMessage(params)); string(r.Result) != want {
			t.Errorf("%s: %s %+v", params, r.Result, r.Error)
		}
	}
}

func TestABatchAnswersInOrderAndLeavesOutNotifications(t *testing.T) {
	h := newHouse(t, nil)
	_, text := h.post(`[{"jsonrpc":"2.0","id":"a","method":"acp.get","params":{"n":1}},
		{"jsonrpc":"2.0","method":"acp.get"}, 5,
		{"jsonrpc":"2.0","id":null,"method":"cluster.status"},
		{"jsonrpc":"2.0","id":3,"method":"agent.inbox","params":{"wait_ms":10}}]`)
	var out []reply
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if len(out) != 4 || string(out[0].ID) != `"a"` || out[0].Error != nil || string(out[1].ID) != "null" || out[1].Error.Number != InvalidRequest ||
		string(out[2].ID) != "null" || out[2].Error != nil || out[3].Error == nil || out[3].Error.Data.Code != "not_in_batch" {
		t.Errorf("%s", text)
	}
	if status, text := h.post(`{"jsonrpc":"2.0","method":"acp.get"}`); status != http.StatusNoContent || text != "" {
		t.Errorf("a notification: %d %s", status, text)
	}
}

func TestIDsComeBackAsTheyWereWritten(t *testing.T) {
	h := newHouse(t, nil)
	for _, id := range []string{`"x"`, `"\u0041"`, `0`, `-1`, `12345678901234567890`, `null`} {
		_, text := h.post(`{"jsonrpc":"2.0","id":` + id + `,"method":"cluster.status"}`)
		if r := h.reply(text); string(r.ID) != id {
			t.Errorf("%s came back as %s", id, r.ID)
		}
	}
}

func TestOnlyAJSONPostOfOneMegabyteIsRead(t *testing.T) {
	h := newHouse(t, nil)
	res, err := http.Get(h.url)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusMethodNotAllowed || res.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d", res.StatusCode)
	}
	res, err = http.Post(h.url, "text/plain", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnsupportedMediaType {
		t.Errorf("text/plain: %d", res.StatusCode)
	}
	status, text := h.post(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"` + strings.Repeat("x", 1<<20) + `"}}`)
	if r := h.reply(text); status != http.StatusRequestEntityTooLarge || r.Error.Data.Code != "too_large" {
		t.Errorf("%d %s", status, text)
	}
}

func TestTroubleOfTheNodeIsLoggedAndNotTold(t *testing.T) {
	h := newHouse(t, nil)
	h.b.OnQuery = func(string, string, json.RawMessage, bool) (any, error) { return nil, errors.New("secret path /var/x") }
	r := h.call("acp.get", map[string]any{})
	if r.Error == nil || r.Error.Number != InternalError || r.Error.Data.Code != api.CodeInternal || strings.Contains(r.Error.Message, "secret") {
		t.Errorf("%+v", r.Error)
	}
	if !strings.Contains(h.log.String(), "secret path") {
		t.Error("the log does not tell either")
	}
}

func TestACallThatTakesTooLongSaysThatItMayBeRepeated(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Timeout = time.Nanosecond })
	for _, r := range []reply{h.call("acp.get", map[string]any{}), h.call("acp.submit", h.action("acp.submit", map[string]any{}))} {
		if r.Error == nil || r.Error.Number != Unavailable || r.Error.Data.Code != api.CodeTimeout {
			t.Errorf("%+v", r.Error)
		}
	}
}

func TestTwoMachinesCannotShareAMethodName(t *testing.T) {
	b := apitest.New()
	b.Actions = []machine.Kind{{Name: "cluster.status"}}
	if _, err := New(Config{Backend: b}); err == nil {
		t.Error("the door opened")
	}
}

func TestDiscoverListsEveryMethodWithASchemaThatStandsAlone(t *testing.T) {
	h := newHouse(t, nil)
	r := h.call("rpc.discover", map[string]any{})
	var doc document
	if err := json.Unmarshal(r.Result, &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range doc.Methods {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "acp.get acp.submit agent.inbox cluster.guilt cluster.peers cluster.status rpc.discover" {
		t.Errorf("%s", got)
	}
	get := doc.Methods[0]
	if len(get.Params) != 2 || get.Params[0].Name != "id" || !get.Params[0].Required || get.Params[1].Name != "stale" || get.Auth != bearerAuth {
		t.Errorf("%+v", get)
	}
	if s := string(get.Params[0].Schema); !strings.Contains(s, `"$defs"`) || !strings.Contains(s, `"$id"`) {
		t.Errorf("the reference of %s leads nowhere", s)
	}
	if submit := doc.Methods[1]; len(submit.Params) != 8 || submit.Auth != signatureAuth || submit.By[0] != "agent" {
		t.Errorf("%+v", submit)
	}
}

func FuzzParseKeepsEveryCallApart(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"acp.get","params":{}}`, `[{"jsonrpc":"2.0","method":"x"},1]`, `[]`, `{`,
		`{"jsonrpc":"2.0","id":"\ud83d\ude00","method":"x"}`, ` [ {"id" : null} ] `, "\ufeff{}", `{"jsonrpc":"2.0","id":1e3,"method":"x"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		calls, batch, bad := parse(body)
		if bad != nil {
			if len(calls) != 0 || bad.Data.Code == "" || bad.Data.Fix == "" {
				t.Fatalf("%q: %+v with %d calls", body, bad, len(calls))
			}
			return
		}
		if len(calls) == 0 || len(calls) > maxBatch || !batch && len(calls) != 1 {
			t.Fatalf("%q: %d calls, batch %v", body, len(calls), batch)
		}
		for _, c := range calls {
			if !json.Valid(c.ID) || c.err == nil && (c.Method == "" || c.Params[0] != '{' || !json.Valid(c.Params)) || c.err != nil && c.Notification {
				t.Fatalf("%q: %+v", body, c)
			}
		}
	})
}
