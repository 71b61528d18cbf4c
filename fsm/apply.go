package fsm

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// maxDepth bounds how far reactions may set off reactions. It is a bound on
// programs, not on input: how many things fall due at once, or how many a
// reaction concerns, is up to the state and not limited here.
const maxDepth = 16

// Outcome is what an entry came to.
type Outcome struct {
	Head    Head
	Answers []Answer // one per action, in order
	Records []Record // the leaves it added
	// Checkpoint is the decision log's head at the end of the entry.
	Checkpoint machine.Checkpoint
}

// Apply applies one entry inside the caller's transaction. An error is local
// corruption: the caller drops the transaction and stops.
func (f *FSM) Apply(tx machine.Tx, p *Prepared) (Outcome, error) {
	head, err := ReadHead(tx)
	if err != nil {
		return Outcome{}, err
	}
	r, err := f.rangeOf(tx, head)
	if err != nil {
		return Outcome{}, fmt.Errorf("decision log: %w", err)
	}
	head.Seq++
	run := newRun(f, tx, head)
	data := EntryData{Entry: hashEntry(p.raw), Actions: len(p.items)}
	if data.Code = run.accepts(p); data.Code == "" {
		if p.entry.Stamp > run.head.Stamp {
			run.head.Stamp = p.entry.Stamp
		}
		if err := run.entry(p); err != nil {
			return Outcome{}, err
		}
	} else {
		run.refuseAll(p, data.Code)
	}
	for _, a := range run.answers {
		if a.Refusal != nil {
			data.Refused++
		}
	}
	epoch, err := f.membership.Epoch(f.scope(run.top, f.members))
	if err != nil {
		return Outcome{}, err
	}
	writes, err := run.top.flush()
	if err != nil {
		return Outcome{}, err
	}
	data.Writes = hex.EncodeToString(writes[:])
	if f.dumpEvery > 0 && run.head.Seq%f.dumpEvery == 0 {
		if err := run.dump(tx, epoch); err != nil {
			return Outcome{}, err
		}
	}
	entry := run.record(EntryRecord, fmt.Sprint(run.head.Seq), nil, canon.MustMarshal(data), epoch)
	records := append([]Record{entry}, run.records...)
	for i := range records {
		records[i].Index = r.End() + uint64(i)
	}
	root, err := seal(tx, &run.head, r, records)
	if err != nil {
		return Outcome{}, err
	}
	f.tail = tail{run.head.Size, run.head.Root, r}
	return Outcome{Head: run.head, Answers: run.answers, Records: records, Checkpoint: machine.Checkpoint{Seq: run.head.Seq, Size: run.head.Size, Root: root}}, nil
}

// run is one entry being applied.
type run struct {
	f       *FSM
	top     *overlay // the entry's writes
	tx      *overlay // those of the action being decided, above top
	head    Head
	answers []Answer
	records []Record
}

func newRun(f *FSM, tx machine.Tx, head Head) *run {
	top := newOverlay(tx)
	return &run{f: f, top: top, tx: newOverlay(top), head: head}
}

// accepts says why the whole entry is a no-op, or "".
func (r *run) accepts(p *Prepared) string {
	switch {
	case p.err != nil:
		return "undecodable_entry"
	case hex.EncodeToString(p.entry.Genesis[:]) != r.head.Genesis:
		return machine.CodeWrongCluster
	case p.entry.Generation != r.head.Generation:
		return "stale_generation"
	}
	return ""
}

func (r *run) refuseAll(p *Prepared, code string) {
	for _, it := range p.items {
		r.answers = append(r.answers, Answer{ActionID: it.action().ID, Seq: r.head.Seq, Stamp: r.head.Stamp,
			Refusal: machine.Refuse(code, "send it again", "the entry that carried the action was not accepted")})
	}
}

func (r *run) entry(p *Prepared) error {
	if err := r.due(); err != nil {
		return err
	}
	for i := range p.items {
		answer, err := r.action(&p.items[i])
		if err != nil {
			return fmt.Errorf("action %d of entry %d: %w", i, r.head.Seq, err)
		}
		answer.ActionID = p.items[i].action().ID
		if answer.Seq == 0 {
			answer.Seq, answer.Stamp = r.head.Seq, r.head.Stamp
		}
		r.answers = append(r.answers, answer)
	}
	return r.f.prune(r.top, r.head.Stamp, 2*len(p.items)+16)
}

// ctx is the machines' context above tx.
func (r *run) ctx(tx machine.Tx) (machine.Ctx, error) {
	epoch, err := r.f.membership.Epoch(r.f.scope(tx, r.f.members))
	return machine.Ctx{
		Genesis: r.head.Genesis, Generation: r.head.Generation, Epoch: epoch,
		Seq: r.head.Seq, Now: r.head.Stamp, World: world{r.f, tx},
	}, err
}

// due runs every machine whose time has come.
func (r *run) due() error {
	for i, m := range r.f.machines {
		own := r.f.scope(r.top, i)
		next, ok, err := m.Next(own)
		if err != nil {
			return err
		}
		if !ok || next > r.head.Stamp {
			continue
		}
		ctx, err := r.ctx(r.top)
		if err != nil {
			return err
		}
		events, err := m.Due(own, ctx)
		if err != nil {
			return fmt.Errorf("%s is due: %w", m.Name(), err)
		}
		if err := r.publish(r.top, ctx, i, events); err != nil {
			return err
		}
	}
	return nil
}

// action decides one action: who sent it, whether it was seen before, and
// what its machine says. Its writes reach the entry only if it is accepted.
func (r *run) action(it *prepared) (Answer, error) {
	if it.err != nil {
		return Answer{Refusal: machine.Refuse(machine.CodeMalformed, "see the action format", "not a signed action: %v", it.err)}, nil
	}
	h, refusal, err := r.admit(it)
	if err != nil || refusal != nil {
		return Answer{Refusal: refusal}, err
	}
	v := *it.verified
	if answer, seen, err := earlier(r.top, v); err != nil || seen {
		return answer, err
	}
	if refusal := r.f.inWindow(it.action().ID, r.head.Stamp); refusal != nil {
		return Answer{Refusal: refusal}, nil
	}
	return r.decide(h, v)
}

// admit authenticates an action and checks that its sender may send its kind.
func (r *run) admit(it *prepared) (handler, *machine.Refusal, error) {
	a, w := it.action(), world{r.f, r.top}
	if a.Cluster != r.head.Genesis {
		return handler{}, machine.Refuse(machine.CodeWrongCluster, "name this cluster's genesis hash", "the action is for cluster %.12s…", a.Cluster), nil
	}
	key, refusal, err := w.key(a.Actor, a.KID)
	if err != nil || refusal != nil {
		return handler{}, refusal, err
	}
	if it.verified == nil && it.sigErr == nil {
		it.key = key
		it.check(r.f)
	}
	if it.sigErr != nil {
		return handler{}, machine.Refuse(machine.CodeBadSignature, "sign the canonical JSON of the action without sig", "%v", it.sigErr), nil
	}
	h, ok := r.f.kinds[a.Kind]
	if !ok {
		return handler{}, machine.Refuse(machine.CodeUnknownKind, "rpc.discover lists the kinds", "no machine takes %q", a.Kind), nil
	}
	refusal, err = w.maySend(a.Actor, h.kind)
	return h, refusal, err
}

// maySend checks the sender's standing against the kind's senders.
func (w world) maySend(actor string, kind machine.Kind) (*machine.Refusal, error) {
	p, known, err := w.Principal(actor)
	if err != nil {
		return nil, err
	}
	if !known {
		if kind.Strangers {
			return nil, nil
		}
		return machine.Refuse(machine.CodeUnknownActor, "join the cluster first", "%s is not a member", actor), nil
	}
	if !p.Active {
		return machine.Refuse(machine.CodeRevoked, "ask an operator", "%s is revoked", actor), nil
	}
	for _, k := range kind.By {
		if k == p.Kind {
			return nil, nil
		}
	}
	return machine.Refuse(machine.CodeNotAuthorized, "send it as one of those", "%s is for %s only, and %s is none", kind.Name, plural(kind.By), actor), nil
}

// decide applies a new, authentic action and keeps its answer.
func (r *run) decide(h handler, v machine.Verified) (Answer, error) {
	answer := Answer{ActionID: v.Action().ID, Seq: r.head.Seq, Stamp: r.head.Stamp}
	tx := r.tx
	defer tx.drop()
	ctx, err := r.ctx(tx)
	if err != nil {
		return answer, err
	}
	m := r.f.machines[h.machine]
	mark := len(r.records)
	result, events, err := m.Apply(r.f.scope(tx, h.machine), ctx, v)
	if err == nil {
		err = r.publish(tx, ctx, h.machine, events)
	}
	if err == nil {
		if answer.Result, err = canon.Marshal(result); err == nil {
			tx.settle()
		}
	}
	if refusal, ok := machine.IsRefusal(err); ok {
		answer.Result, answer.Refusal, r.records = nil, refusal, r.records[:mark]
	} else if err != nil {
		return answer, err
	}
	return answer, keep(r.top, v, answer)
}

// publish records events and lets the other machines react, in order.
func (r *run) publish(tx machine.Tx, ctx machine.Ctx, from int, events []machine.Event) error {
	type item struct {
		from, depth int
		event       machine.Event
	}
	queue := make([]item, 0, len(events))
	for _, e := range events {
		queue = append(queue, item{from, 0, e})
	}
	for n := 0; n < len(queue); n++ {
		e := queue[n].event
		data, err := canon.Marshal(e.Data)
		if err != nil {
			return fmt.Errorf("event %s: %w", e.Type, err)
		}
		r.records = append(r.records, r.record(e.Type, e.Subject, e.To, data, ctx.Epoch))
		for i, m := range r.f.machines {
			if i == queue[n].from {
				continue
			}
			more, err := m.React(r.f.scope(tx, i), ctx, e)
			if err != nil {
				return fmt.Errorf("%s reacts to %s: %w", m.Name(), e.Type, err)
			}
			if len(more) > 0 && queue[n].depth == maxDepth {
				return fmt.Errorf("machines react to each other more than %d deep, last %s to %s", maxDepth, m.Name(), e.Type)
			}
			for _, e := range more {
				queue = append(queue, item{i, queue[n].depth + 1, e})
			}
		}
	}
	return nil
}

func (r *run) record(typ, subject string, to []string, data []byte, epoch uint64) Record {
	return Record{Data: data, Epoch: epoch, Generation: r.head.Generation, Genesis: r.head.Genesis,
		Seq: r.head.Seq, Stamp: r.head.Stamp, Subject: subject, To: to, Type: typ}
}

// plural lists kinds of principals: "agents, humans".
func plural(kinds []machine.PrincipalKind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k) + "s"
	}
	return strings.Join(names, ", ")
}
