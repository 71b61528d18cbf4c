package machine_test

import (
	"testing"
	"testing/fstest"

	"github.com/deliberd/deliberd/machine"
)

func TestASchemaIsFoundByItsName(t *testing.T) {
	files := fstest.MapFS{"schema/submit.json": {Data: []byte(`{"type":"object"}`)}}
	if text, err := machine.ReadSchema(files, "submit"); err != nil || string(text) != `{"type":"object"}` {
		t.Errorf("%s, %v", text, err)
	}
	if text := machine.MustSchema(files, "submit"); string(text) != `{"type":"object"}` {
		t.Errorf("%s", text)
	}
	for _, name := range []string{"other", "", "../schema/submit"} {
		if _, err := machine.ReadSchema(files, name); err == nil {
			t.Errorf("there is a schema %q", name)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a program goes on without its schema")
		}
	}()
	machine.MustSchema(files, "other")
}
