package fsm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Kinds lists every kind of action, by name.
func (f *FSM) Kinds() []machine.Kind {
	out := make([]machine.Kind, 0, len(f.kinds))
	for _, h := range f.kinds { // order: sorted below
		out = append(out, h.kind)
	}
	slices.SortFunc(out, func(a, b machine.Kind) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Queries lists every query, by name.
func (f *FSM) Queries() []machine.Query {
	out := make([]machine.Query, 0, len(f.queries))
	for _, q := range f.queries { // order: sorted below
		out = append(out, q.query)
	}
	slices.SortFunc(out, func(a, b machine.Query) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// View is the context of reads and one machine's own keys.
func (f *FSM) View(tx machine.Tx, name string) (machine.Tx, machine.Ctx, error) {
	h, err := ReadHead(tx)
	if err != nil {
		return nil, machine.Ctx{}, err
	}
	r := run{f: f, head: h}
	ctx, err := r.ctx(tx)
	at, ok := f.byName[name]
	if !ok {
		return nil, machine.Ctx{}, fmt.Errorf("no machine is named %q", name)
	}
	return f.scope(tx, at), ctx, err
}

// Query answers one read from committed state, as canonical JSON. It errs
// with a [*machine.Refusal] on an unknown name or bad parameters.
func (f *FSM) Query(tx machine.Tx, name, principal string, params json.RawMessage) (json.RawMessage, error) {
	q, ok := f.queries[name]
	if !ok {
		return nil, machine.Refuse(machine.CodeUnknownKind, "rpc.discover lists the queries", "no machine answers %q", name)
	}
	own, ctx, err := f.View(tx, f.machines[q.machine].Name())
	if err != nil {
		return nil, err
	}
	out, err := q.query.Run(own, ctx, principal, params)
	if err != nil {
		return nil, err
	}
	return canon.Marshal(out)
}

// Asks lists what a principal is asked now by all machines, the nearest
// deadline first, those without a deadline last.
func (f *FSM) Asks(tx machine.Tx, principal string) ([]machine.Ask, error) {
	out := []machine.Ask{}
	for _, m := range f.machines {
		own, ctx, err := f.View(tx, m.Name())
		if err != nil {
			return nil, err
		}
		asks, err := m.Asks(own, ctx, principal)
		if err != nil {
			return nil, err
		}
		out = append(out, asks...)
	}
	slices.SortStableFunc(out, func(a, b machine.Ask) int { return machine.CompareDeadlines(a.Deadline, b.Deadline) })
	return out, nil
}

// Next is the earliest stamp at which some machine has something to do.
func (f *FSM) Next(tx machine.Tx) (machine.Stamp, bool, error) {
	var first machine.Stamp
	any := false
	for i, m := range f.machines {
		at, ok, err := m.Next(f.scope(tx, i))
		if err != nil {
			return 0, false, err
		}
		if ok && (!any || at < first) {
			first, any = at, true
		}
	}
	return first, any, nil
}
