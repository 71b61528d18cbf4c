// Package api is what every door of a node asks of the node: submit a signed
// action, run a query, list what a principal is asked, follow the events.
// The doors (api/rpc, api/events and those to come) translate a wire format
// to a [Backend] and decide nothing themselves; api/door listens and mounts
// them.
//
// Refusals travel as [*machine.Refusal] with a stable code, a sentence and
// what to do next. Any other error is the node's own trouble: a door reports
// it as "internal" and logs the text.
package api
