package machine_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/machine"
)

type body struct {
	ID    string          `json:"id"`
	N     int             `json:"n,omitempty"`
	Any   json.RawMessage `json:"any,omitempty"`
	Inner *struct {
		X string `json:"x"`
	} `json:"inner,omitempty"`
}

func TestBodiesAreDecodedStrictly(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"id":"a"}`: true, `{}`: true, `{"id":"null","n":1}`: true, `{"any":{"x":null}}`: true, `{"any":[null]}`: true, ` {"inner":{"x":"1"}}`: true,
		`{"id":null}`: false, `{"any":null}`: false, `{"inner":null}`: false, `{"ID":"a"}`: false, `{"id":1}`: false, `{"n":1.5}`: false,
		`{"more":1}`: false, `{"inner":{"y":1}}`: false, `null`: false, `[]`: false, `"x"`: false,
	} {
		var v body
		err := machine.DecodeBody(json.RawMessage(text), &v)
		if r, refused := machine.IsRefusal(err); ok && err != nil || !ok && (!refused || r.Code != machine.CodeMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestNoParametersAreAnEmptyObject(t *testing.T) {
	for text, ok := range map[string]bool{``: true, ` `: true, `{}`: true, `{"id":"a"}`: true, `{"id":"a","id":"b"}`: false, `{`: false, `null`: false, `{"id":"\ud800"}`: false, `[1]`: false} {
		v := body{}
		err := machine.DecodeParams(json.RawMessage(text), &v)
		if r, refused := machine.IsRefusal(err); ok && err != nil || !ok && (!refused || r.Code != machine.CodeMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNoDeadlineComesLast(t *testing.T) {
	want := []machine.Stamp{1, 2, 1<<63 - 1, 0}
	for i, a := range want {
		for j, b := range want {
			if got := machine.CompareDeadlines(a, b); got != cmp.Compare(i, j) {
				t.Errorf("%d and %d compare as %d", a, b, got)
			}
		}
	}
}

func TestARefusalSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	r := machine.Refuse("too_late", "open another round", "round %s is closed", "r1").With("round", "r1").With("since", 7)
	if r.Error() != "too_late: round r1 is closed; open another round" || fmt.Sprint(r.Data) != "map[round:r1 since:7]" {
		t.Fatalf("%v, %v", r, r.Data)
	}
	if got := machine.Refuse("too_late", "", "closed").Error(); got != "too_late: closed" {
		t.Fatal(got)
	}
	if got, ok := machine.IsRefusal(fmt.Errorf("apply: %w", r)); !ok || got != r {
		t.Fatal("not found behind another error")
	}
	if _, ok := machine.IsRefusal(errors.New("disk")); ok {
		t.Fatal("any error is a refusal")
	}
	if _, ok := machine.IsRefusal(nil); ok {
		t.Fatal("no error is a refusal")
	}
}

func FuzzDecodeParams(f *testing.F) {
	f.Add([]byte(`{"id":"a","inner":{"x":"null"}}`))
	f.Add([]byte(`{"any":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var v body
		err := machine.DecodeParams(text, &v)
		if err != nil {
			if _, refused := machine.IsRefusal(err); !refused {
				t.Fatal(err)
			}
			return
		}
		if len(strings.TrimSpace(string(text))) == 0 {
			return
		}
		var members map[string]json.RawMessage // what is taken is an object without null members
		if err := json.Unmarshal(text, &members); err != nil || members == nil {
			t.Fatalf("%q: %v", text, err)
		}
		for name, value := range members {
			if string(value) == "null" {
				t.Fatalf("%q: %s is null", text, name)
			}
		}
	})
}
