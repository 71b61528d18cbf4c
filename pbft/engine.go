package pbft

import (
	"errors"

	"github.com/deliberd/deliberd/machine"
)

// Defaults of a [Config], in ticks.
const (
	DefaultTimeout  = 20
	DefaultResend   = 4
	DefaultDoubling = 6
)

// Config says what an [Engine] decides and with whom.
type Config struct {
	Instance  Instance
	Committee *Committee // the voters of Instance.Epoch
	Self      int        // this replica's index, or [Observer]

	// Expected is the one value this replica holds to be right, when it is a
	// function of what the replica knows already. Zero when Validate is used.
	Expected Digest
	// Validate reports whether a proposed value may be accepted; it must always
	// give the same answer. Used when Expected is zero.
	Validate func(Digest) bool

	// In ticks; 0 or less is the default.
	Timeout  int // in view 0 before the view is left; doubled in each next view
	Resend   int // between repetitions of this replica's latest votes
	Doubling int // how often Timeout is doubled at most, up to 20

	Restored Restored
}

// Restored is what an earlier run of the replica stored for the instance.
type Restored struct {
	Frames      []*Frame     // its own frames, in the order in which they were stored
	Prepared    []*Prepared  // the certificates stored with them
	Certificate *Certificate // the decision, if it was stored
}

// Ready is what the caller must do now; see the package's documentation for
// the order.
type Ready struct {
	// Votes are to be signed by this replica and stored before anybody sees them.
	Votes []Vote
	// Prepared must be stored together with Votes, when set.
	Prepared *Prepared
	// Resend are stored frames to be sent again to all, as they are.
	Resend []*Frame
	// Answers are members who still ask: send them Decision.
	Answers []int
	// Decided is set once, when the instance is decided.
	Decided *Certificate
	// Guilt are proofs against members, each member at most once.
	Guilt []Guilt
}

// Engine is one replica's part in one instance. It is not safe for concurrent
// use, starts nothing and knows no clock.
type Engine struct {
	cfg       Config
	committee *Committee
	instance  Instance
	domain    Domain
	key       Digest
	self      int

	value  Digest           // what this replica proposes when it is free to; zero: nothing yet
	view   uint64           // the view this replica takes part in
	votes  []ballots        // by member, verified; this replica's own once they are stored
	own    map[slot]ownVote // cast by this replica, in its latest views
	sent   []*Frame         // own stored frames of the current view, to be sent again
	locked *Prepared        // the highest prepared certificate this replica committed on
	cert   *Certificate

	armed    bool // the view's timer runs
	left     int  // ticks until the view is left
	resendIn int
	now      uint64   // ticks since start
	answered []uint64 // by member: tick of the last certificate sent

	fresh  []uint64 // views in which a commit was filed since the last look
	ready  Ready    // collected since the last Ready
	handed []Vote   // handed out and not advanced yet
}

// ownVote is a vote this replica has decided to cast; stored once a frame
// that holds it is.
type ownVote struct {
	Vote
	stored bool
}

// New starts a replica: fresh, or where Config.Restored left it. It refuses a
// committee of another epoch, an instance without value, and restored state
// that is not this replica's own (corrupt).
func New(cfg Config) (*Engine, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	e := &Engine{
		cfg: cfg, committee: cfg.Committee, instance: cfg.Instance, domain: cfg.Instance.Domain(),
		key: cfg.Instance.Key(), self: cfg.Self, value: cfg.Expected,
		votes: make([]ballots, cfg.Committee.N()), own: map[slot]ownVote{},
		resendIn: cfg.Resend, answered: make([]uint64, cfg.Committee.N()),
	}
	if err := e.restore(cfg.Restored); err != nil {
		return nil, err
	}
	e.cfg.Restored = Restored{}
	return e, e.advance()
}

func (c *Config) check() error {
	if err := c.Instance.Check(); err != nil {
		return err
	}
	if c.Committee == nil || c.Committee.epoch != c.Instance.Epoch {
		return machine.Refuse(CodeBadCommittee, "give the voters of the instance's epoch", "no committee of epoch %d", c.Instance.Epoch)
	}
	if c.Self < Observer || c.Self >= c.Committee.N() {
		return machine.Refuse(CodeNotMember, "", "the committee has no member %d", c.Self)
	}
	if c.Expected.IsZero() && c.Validate == nil && c.Self != Observer {
		return machine.Refuse(CodeMalformed, "set Expected or Validate", "no way to tell a right value")
	}
	for _, d := range []struct {
		field    *int
		fallback int
	}{{&c.Timeout, DefaultTimeout}, {&c.Resend, DefaultResend}, {&c.Doubling, DefaultDoubling}} {
		if *d.field <= 0 {
			*d.field = d.fallback
		}
	}
	c.Doubling = min(c.Doubling, 20)
	return nil
}

// Key is the instance's key.
func (e *Engine) Key() Digest { return e.key }

// Instance is what the engine decides.
func (e *Engine) Instance() Instance { return e.instance }

// View is the view this replica takes part in.
func (e *Engine) View() uint64 { return e.view }

// Decision is the certificate, or nil while the instance is undecided.
func (e *Engine) Decision() *Certificate { return e.cert }

// Held is how many votes the engine keeps, its own among them, whatever others
// send at most 16 for each member and 32 more.
func (e *Engine) Held() int {
	count := len(e.own) + len(e.sent) + len(e.fresh)
	for m := range e.votes {
		for _, list := range e.votes[m].of {
			count += len(list)
		}
	}
	return count
}

// Committee is the instance's committee.
func (e *Engine) Committee() *Committee { return e.committee }

// Propose gives the value that this replica proposes when it is the primary
// and nothing is prepared. Once given it stays.
func (e *Engine) Propose(value Digest) {
	if e.value.IsZero() && e.valid(value) {
		e.value = value
		_ = e.advance() // only a filed commit can make it err
	}
}

// valid reports whether this replica may vote for a value.
func (e *Engine) valid(d Digest) bool {
	if !e.cfg.Expected.IsZero() {
		return d == e.cfg.Expected
	}
	return !d.IsZero() && e.cfg.Validate != nil && e.cfg.Validate(d)
}

// Step takes a verified frame. Votes of other instances are passed over. The
// error joins why votes were refused; it is nil when all were counted. A
// refused vote never keeps the frame's other votes from being counted.
func (e *Engine) Step(v Verified) error {
	var errs []error
	for i := range v.votes {
		if v.votes[i].Key == e.key {
			errs = append(errs, e.StepVote(v, i))
		}
	}
	if v.frame == nil || v.frame.domain != e.domain {
		errs = append(errs, machine.Refuse(CodeOtherDomain, "", "the frame is of another genesis, generation or epoch"))
	}
	return errors.Join(errs...)
}

// StepVote is [Engine.Step] for the vote at one index of the frame, for
// callers who sort the votes of a frame by instance themselves.
func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil || v.frame.domain != e.domain {
		return machine.Refuse(CodeOtherDomain, "", "the frame is of another genesis, generation or epoch")
	}
	if v.votes[i].Key != e.key {
		return machine.Refuse(CodeOtherInstance, "", "the vote is of another instance")
	}
	if v.frame.signer == e.self {
		return e.stepOwn(v.votes[i])
	}
	if e.cert != nil {
		e.answer(v.frame.signer)
	}
	refused := e.count(v.frame, v.votes[i])
	return errors.Join(refused, e.advance())
}

// count files one vote of another member.
func (e *Engine) count(f *Frame, v verifiedVote) error {
	from, b := f.signer, &e.votes[f.signer]
	if v.refused != nil {
		// What a vote carries is not signed and cannot excuse what it says.
		if held := b.find(v.slot()); held != nil && !held.vote.same(v.Vote) {
			return e.compare(from, held, cast{v, f.Proof()})
		}
		return v.refused
	}
	primary := e.committee.Primary(e.key, v.View)
	if (v.Phase == PrePrepare) != (from == primary) && (v.Phase == PrePrepare || v.Phase == Prepare) {
		return machine.Refuse(CodeNotPrimary, "", "member %d sent a %s in view %d, whose primary is %d", from, v.Phase, v.View, primary)
	}
	if held := b.find(v.slot()); held != nil {
		return e.compare(from, held, cast{v, f.Proof()})
	}
	if e.cert != nil {
		return machine.Refuse(CodeOld, "", "the instance is decided")
	}
	if !b.room(v.slot()) || v.View < e.view && v.Phase != Commit {
		return machine.Refuse(CodeOld, "", "view %d is past", v.View)
	}
	e.file(from, cast{v, f.Proof()})
	return nil
}

// file keeps a verified vote in its empty slot. A new view also shows which
// members have reached it.
func (e *Engine) file(from int, c cast) {
	e.votes[from].add(c)
	if c.vote.Phase == Commit {
		e.fresh = append(e.fresh, c.vote.View)
	}
	if c.vote.newView != nil {
		for _, claim := range c.vote.newView.Claims {
			b := &e.votes[claim.Proof.Signer]
			b.highest = max(b.highest, c.vote.View)
		}
	}
}

// compare meets a second vote in a slot: a repetition, or guilt.
func (e *Engine) compare(from int, held *cast, again cast) error {
	if held.vote.same(again.vote.Vote) {
		return machine.Refuse(CodeDuplicate, "", "member %d repeats its %s of view %d", from, again.vote.Phase, again.vote.View)
	}
	if !e.votes[from].guilty {
		e.votes[from].guilty = true
		g := Guilt{Instance: e.instance, A: held.vote.Vote, B: again.vote.Vote, ProofA: held.proof, ProofB: again.proof}
		g.A.Proof, g.B.Proof = nil, nil
		e.ready.Guilt = append(e.ready.Guilt, g)
	}
	return machine.Refuse(CodeEquivocation, "", "member %d cast two different %s votes in view %d", from, again.vote.Phase, again.vote.View)
}

// Wants reports whether a frame, not verified yet, could matter here: callers
// drop what cannot before paying for its verification.
func (e *Engine) Wants(f *Frame) bool {
	for i := range f.votes {
		if f.votes[i].Key == e.key && e.WantsVote(f, i) {
			return true
		}
	}
	return false
}

// WantsVote is [Engine.Wants] for the vote at one index of the frame.
func (e *Engine) WantsVote(f *Frame, i int) bool {
	v := &f.votes[i]
	if v.Key != e.key || f.domain != e.domain || f.signer < 0 || f.signer >= len(e.votes) || f.signer == e.self || v.Phase > ViewChange {
		return false
	}
	if e.cert != nil && e.mayAnswer(f.signer) {
		return true
	}
	b := &e.votes[f.signer]
	if held := b.find(v.slot()); held != nil {
		return !b.guilty && !held.vote.same(*v)
	}
	return e.cert == nil && e.useful(v)
}

// useful reports whether a vote in an empty slot can change what is undecided.
func (e *Engine) useful(v *Vote) bool {
	if v.Phase == Commit || e.self == Observer {
		return v.Phase == Commit
	}
	switch v.Phase {
	case Prepare:
		if v.View == e.view {
			_, committed := e.own[slot{v.View, Commit}]
			return !committed
		}
		return v.View > e.view
	case PrePrepare, ViewChange:
		return v.View >= e.view
	}
	return false
}

// StepCertificate takes a decision that others reached. It refuses one of
// another instance, and with unexpected_value one that differs from Expected:
// then either this replica's state or more than f voters are wrong.
func (e *Engine) StepCertificate(v VerifiedCertificate) error {
	if v.cert == nil || v.cert.Instance != e.instance {
		return machine.Refuse(CodeOtherInstance, "", "the certificate is of another instance")
	}
	e.hear(v.cert)
	return e.decide(v.cert)
}

// hear compares the commits that a certificate quotes with those held.
func (e *Engine) hear(cert *Certificate) {
	quoted := Vote{Key: e.key, View: cert.View, Phase: Commit, Digest: cert.Digest}
	for _, p := range cert.Votes {
		if held := e.votes[p.Signer].find(quoted.slot()); p.Signer != e.self && held != nil {
			_ = e.compare(p.Signer, held, cast{verifiedVote{Vote: quoted}, p}) // counted with the others in any case
		}
	}
}

// decide ends the instance. Nothing is voted on afterwards, so views stop changing.
func (e *Engine) decide(cert *Certificate) error {
	if !e.cfg.Expected.IsZero() && cert.Digest != e.cfg.Expected {
		return machine.Refuse(CodeUnexpected, "compare this node's state with its peers'", "%s is certified, this replica expected %s", cert.Digest, e.cfg.Expected)
	}
	if e.cert != nil {
		return nil
	}
	e.cert, e.armed, e.sent = cert, false, nil
	for m := range e.answered {
		e.answered[m] = e.now
	}
	e.ready.Decided = cert
	e.ready.Votes, e.ready.Prepared, e.ready.Resend = nil, nil, nil
	return nil
}

// mayAnswer bounds certificates to one per member and resend interval. Votes
// still under way when the instance is decided fall into the first interval.
func (e *Engine) mayAnswer(member int) bool {
	return e.now-e.answered[member] >= uint64(e.cfg.Resend)
}

// answer sends the certificate to a member who still votes.
func (e *Engine) answer(member int) {
	if e.mayAnswer(member) {
		e.answered[member] = e.now
		e.ready.Answers = append(e.ready.Answers, member)
	}
}

// HasReady reports whether there is something to do.
func (e *Engine) HasReady() bool {
	r := &e.ready
	return len(r.Votes) > 0 && len(e.handed) == 0 || len(r.Resend)+len(r.Answers)+len(r.Guilt) > 0 || r.Decided != nil
}

// Ready hands out what to do now. Votes that it hands out are followed by
// [Engine.Advance] once they are stored; until then it hands out no others,
// but steps, ticks and the rest of Ready go on.
func (e *Engine) Ready() Ready {
	r := e.ready
	e.ready = Ready{}
	if len(e.handed) > 0 {
		e.ready.Votes, e.ready.Prepared = r.Votes, r.Prepared
		r.Votes, r.Prepared = nil, nil
		return r
	}
	e.handed = r.Votes
	return r
}

// Advance takes the frames that hold the votes handed out, now stored. It errs
// when a vote is missing from them or a frame is not this replica's: the
// caller then did not store what it was told to.
func (e *Engine) Advance(stored ...Verified) error {
	handed := e.handed
	e.handed = nil
	for _, v := range stored {
		if err := e.keep(v); err != nil {
			return err
		}
	}
	for _, v := range handed {
		if !e.own[v.slot()].stored {
			return machine.Refuse(CodeCorrupt, "store and return every vote of Ready", "the %s of view %d is missing", v.Phase, v.View)
		}
	}
	return e.advance()
}
