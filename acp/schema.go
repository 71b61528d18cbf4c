package acp

import (
	"embed"
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

//go:embed schema/*.json
var schemas embed.FS

// Schema returns a JSON Schema (2020-12): "proposal" and "decision-event" are
// those of Appendix B under their own $id; the others are bodies of the
// machine's kinds and parameters of its queries.
func Schema(name string) (json.RawMessage, error) {
	return machine.ReadSchema(schemas, name)
}

func schema(name string) json.RawMessage { return machine.MustSchema(schemas, name) }
