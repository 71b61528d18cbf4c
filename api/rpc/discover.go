package rpc

import (
	"encoding/json"
	"fmt"
	"sort"

	"github.com/deliberd/deliberd/internal/canon"
)

// auth is how a method knows its caller.
type auth string

const (
	signatureAuth auth = "signature" // the action's own
	bearerAuth    auth = "bearer"
	noAuth        auth = "none"
)

// The document of rpc.discover (OpenRPC 1.3). x-auth and x-by are ours.
type document struct {
	OpenRPC string       `json:"openrpc"`
	Info    info         `json:"info"`
	Methods []methodInfo `json:"methods"`
}

type info struct {
	Title   string `json:"title"`
	Version string `json:"version"`
}

type methodInfo struct {
	Name           string   `json:"name"`
	Summary        string   `json:"summary"`
	ParamStructure string   `json:"paramStructure"`
	Params         []param  `json:"params"`
	Result         param    `json:"result"`
	Auth           auth     `json:"x-auth"`
	By             []string `json:"x-by,omitempty"` // kinds of principal that may send the action
}

type param struct {
	Name     string          `json:"name"`
	Required bool            `json:"required,omitempty"`
	Schema   json.RawMessage `json:"schema"`
}

// describe renders the listing once: methods do not change while a node runs.
func (h *Handler) describe() (json.RawMessage, error) {
	doc := document{OpenRPC: "1.3.2", Info: info{Title: "deliberd", Version: "1"}, Methods: []methodInfo{}}
	for _, k := range h.cfg.Backend.Kinds() {
		m := methodInfo{Name: k.Name, Summary: k.Summary, Params: actionParams(k.Name, k.Schema), Auth: signatureAuth,
			Result: param{Name: "answer", Schema: json.RawMessage(answerSchema)}}
		for _, by := range k.By {
			m.By = append(m.By, string(by))
		}
		doc.Methods = append(doc.Methods, m)
	}
	for _, q := range h.cfg.Backend.Queries() {
		params, err := namedParams(q.Name, q.Schema)
		if err != nil {
			return nil, err
		}
		if !hasParam(params, "stale") {
			params = append(params, param{Name: "stale", Schema: json.RawMessage(`{"type":"boolean"}`)})
		}
		doc.Methods = append(doc.Methods, methodInfo{Name: q.Name, Summary: q.Summary, Params: params, Auth: bearerAuth, Result: anything})
	}
	for _, o := range h.own() {
		params, err := namedParams(o.name, json.RawMessage(o.schema))
		if err != nil {
			return nil, err
		}
		doc.Methods = append(doc.Methods, methodInfo{Name: o.name, Summary: o.summary, Params: params, Auth: o.auth, Result: anything})
	}
	for i := range doc.Methods {
		doc.Methods[i].ParamStructure = "by-name"
	}
	sort.Slice(doc.Methods, func(i, j int) bool { return doc.Methods[i].Name < doc.Methods[j].Name })
	return canon.Marshal(doc)
}

var anything = param{Name: "result", Schema: json.RawMessage(`true`)}

const answerSchema = `{"type":"object","required":["seq","stamp_ms","action_id","result","finality"],"properties":{` +
	`"seq":{"type":"integer"},"stamp_ms":{"type":"integer"},"action_id":{"type":"string"},"result":true,"finality":{"enum":["ordered","attested"]}}}`

// actionParams are the members of a signed action of one kind.
func actionParams(kind string, body json.RawMessage) []param {
	text := func(pattern string) json.RawMessage {
		return canon.MustMarshal(map[string]string{"type": "string", "pattern": pattern})
	}
	if len(body) == 0 {
		body = json.RawMessage(`{"type":"object"}`)
	}
	return []param{
		{"cluster", true, text("^[0-9a-f]{64}$")},
		{"id", true, text("^[0-7][0-9A-HJKMNP-TV-Z]{25}$")},
		{"kind", true, canon.MustMarshal(map[string]string{"const": kind})},
		{"actor", true, text("^[A-Za-z0-9._:@/-]{1,128}$")},
		{"kid", true, text("^[A-Za-z0-9_-]{43}$")},
		{"v", true, json.RawMessage(`{"const":1}`)},
		{"body", true, body},
		{"sig", true, text(`^[A-Za-z0-9_-]+\.\.[A-Za-z0-9_-]{86}$`)},
	}
}

// namedParams takes an object schema apart into its members. A member's
// schema that refers to the whole's $defs becomes a schema resource of its
// own, so that its references still resolve.
func namedParams(method string, schema json.RawMessage) ([]param, error) {
	out := []param{}
	if len(schema) == 0 {
		return out, nil
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Defs       json.RawMessage            `json:"$defs"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, fmt.Errorf("rpc: schema of %s: %w", method, err)
	}
	required := map[string]bool{}
	for _, name := range s.Required {
		required[name] = true
	}
	for name, text := range s.Properties {
		if len(s.Defs) > 0 {
			var err error
			if text, err = withDefs("urn:deliberd:"+method+":"+name, text, s.Defs); err != nil {
				return nil, fmt.Errorf("rpc: schema of %s: %w", method, err)
			}
		}
		out = append(out, param{name, required[name], text})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

func withDefs(id string, text, defs json.RawMessage) (json.RawMessage, error) {
	if text[0] != '{' {
		return text, nil // true or false
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, err
	}
	members["$id"], members["$defs"] = canon.MustMarshal(id), defs
	return canon.Marshal(members)
}

func hasParam(params []param, name string) bool {
	for _, p := range params {
		if p.Name == name {
			return true
		}
	}
	return false
}
