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
