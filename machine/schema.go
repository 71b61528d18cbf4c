package machine

import (
	"encoding/json"
	"fmt"
	"io/fs"
)

// ReadSchema returns schema/<name>.json of the files that a machine embeds.
func ReadSchema(files fs.FS, name string) (json.RawMessage, error) {
	text, err := fs.ReadFile(files, "schema/"+name+".json")
	if err != nil {
		return nil, fmt.Errorf("no schema %q", name)
	}
	return text, nil
}

// MustSchema is [ReadSchema] of a file that the program was made with.
func MustSchema(files fs.FS, name string) json.RawMessage {
	text, err := ReadSchema(files, name)
	if err != nil {
		panic(err)
	}
	return text
}
