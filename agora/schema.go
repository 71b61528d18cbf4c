package agora

import (
	"embed"
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

//go:embed schema/*.json
var schemas embed.FS

// Schema returns a JSON Schema (2020-12) of a kind's body or a query's
// parameters: propose, vote, veto, evaluate, get, list, dissents.
func Schema(name string) (json.RawMessage, error) {
	return machine.ReadSchema(schemas, name)
}

func schema(name string) json.RawMessage { return machine.MustSchema(schemas, name) }
