package machine_test

import (
	"encoding/json"
	"testing"

	"github.com/deliberd/deliberd/machine"
)

func TestADecodedBodyIsAnObjectOfKnownMembersWithoutNull(t *testing.T) {
	type body struct {
		Name  string          `json:"name"`
		Inner json.RawMessage `json:"inner"`
	}
	for text, want := range map[string]bool{
		`{"name":"n"}`: true, `{}`: true, ` {"name":"null","inner":{"x":null}} `: true,
		`{"name":null}`: false, `{"inner": null}`: false, `{"Name":"n"}`: false, `{"other":1}`: false, `{"name":1}`: false, `[]`: false, `null`: false, `"x"`: false,
	} {
		var v body
		err := machine.DecodeBody(json.RawMessage(text), &v)
		if r, refused := machine.IsRefusal(err); (err == nil) != want || !want && (!refused || r.Code != machine.CodeMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var v body
	if err := machine.DecodeParams(nil, &v); err != nil {
		t.Errorf("no parameters: %v", err)
	}
	if err := machine.DecodeParams(json.RawMessage(`{"name":"a","name":"b"}`), &v); err == nil {
		t.Error("duplicate members are taken")
	}
}

type named struct {
	Name string `json:"name,omitempty"`
}

func (n named) shape() *machine.Refusal {
	if n.Name == "nobody" {
		return machine.Refuse(machine.CodeOutOfRange, "name somebody", "nobody is named")
	}
	return nil
}

func TestAnExactBodyHasOneSpellingAndAGoodShape(t *testing.T) {
	for text, code := range map[string]string{
		`{"name":"n"}`: "", ` { "name" : "n" } `: "", `{}`: "", `{"name":"nobody"}`: machine.CodeOutOfRange,
		`{"name":""}`: machine.CodeMalformed, `{"name":null}`: machine.CodeMalformed, `{"Name":"n"}`: machine.CodeMalformed,
		`{"x":1}`: machine.CodeMalformed, `null`: machine.CodeMalformed, `[]`: machine.CodeMalformed, ``: machine.CodeMalformed,
	} {
		v, err := machine.DecodeExact(json.RawMessage(text), named.shape)
		r, refused := machine.IsRefusal(err)
		if code == "" && (err != nil || v.Name != "" && v.Name != "n") || code != "" && (!refused || r.Code != code) {
			t.Errorf("%q: %v, %v", text, v, err)
		}
		params, again := machine.DecodeExactParams(json.RawMessage(text), named.shape)
		if text != "" && (params != v || (again == nil) != (err == nil)) || text == "" && again != nil {
			t.Errorf("%q as parameters: %v, %v", text, params, again)
		}
	}
}

func TestOnlyADecodedBodyIsApplied(t *testing.T) {
	decode := func(raw json.RawMessage) (named, error) { return machine.DecodeExact(raw, named.shape) }
	do := func(state string, ctx machine.Ctx, a machine.Action, n named) (any, []machine.Event, error) {
		return state + a.ID + n.Name, []machine.Event{{Type: "x.done"}}, nil
	}
	for text, want := range map[string]any{`{"name":"n"}`: "s1n", `{"x":1}`: nil} {
		answer, events, err := machine.Decoded("s", machine.Ctx{}, machine.Action{ID: "1", Body: json.RawMessage(text)}, decode, do)
		if answer != want || (err == nil) != (want != nil) || len(events) != 1 && want != nil {
			t.Errorf("%s: %v, %v, %v", text, answer, events, err)
		}
	}
}
