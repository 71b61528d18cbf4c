package agora

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed schema/*.json
var schemas embed.FS

// Schema returns a JSON Schema (2020-12) of a kind's body or a query's
// parameters: propose, vote, veto, evaluate, get, list, dissents.
func Schema(name string) (json.RawMessage, error) {
	text, err := schemas.ReadFile("schema/" + name + ".json")
	if err != nil {
		return nil, fmt.Errorf("no schema %q", name)
	}
	return text, nil
}

func schema(name string) json.RawMessage {
	text, err := Schema(name)
	if err != nil {
		panic(err) // the file is part of the program
	}
	return text
}
