package api

import (
	"encoding/json"
	"net/http"

	"github.com/deliberd/deliberd/machine"
)

// WriteRefusal answers an HTTP request outside JSON-RPC with a refusal as
// JSON: {"error": {code, message, fix, data}}.
func WriteRefusal(w http.ResponseWriter, status int, r *machine.Refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(map[string]*machine.Refusal{"error": r}) // the client is gone: nobody to tell
}
