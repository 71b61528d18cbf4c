package deliberation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/pbft/quorum"
)

// Purpose is the purpose of the PBFT instances that settle rounds; their id is the round's.
const Purpose = "deliberatic.verdict"

// Prepared is the data of deliberatic.prepared: the surviving positions are
// pre-prepared, and evidence is taken until the deadline.
type Prepared struct {
	Round     string        `json:"round"`
	Why       Why           `json:"why"`
	Survivors []string      `json:"survivors"` // position ids, strongest first
	Outcome   *OutcomeBrief `json:"outcome"`
	Deadline  Stamp         `json:"deadline_ms"`
}

// FrozenEvent is the data of deliberatic.frozen.
type FrozenEvent struct {
	Round       string `json:"round"`
	Generation  uint64 `json:"generation"`
	Epoch       uint64 `json:"epoch"`
	Seq         uint64 `json:"seq"` // entry whose checkpoint the digest is about
	OutcomeHash string `json:"outcome_hash"`
}

// contest begins the conflict path (§3.1).
func (s *step) contest(why Why) error {
	s.state.Path, s.state.Why = PathConflict, why
	s.move(PhasePrepare, s.round.Windows.Evidence)
	var survivors []string
	for _, p := range s.state.Outcome.Strengths {
		survivors = append(survivors, p.Position)
	}
	s.emit("deliberatic.prepared", Prepared{Round: s.round.ID, Why: why, Survivors: survivors, Outcome: s.brief(), Deadline: s.state.Deadline})
	return nil
}

// freeze fixes the outcome. From here the round ends by a certificate only;
// a majority that rejects what would be frozen is obeyed before.
func (s *step) freeze() error {
	if err := s.useStanding(); err != nil {
		return err
	}
	count, err := s.count()
	if err != nil {
		return err
	}
	if count.Rejects >= MajorityOf(count.Participants) {
		return s.rejected(ReasonRejected)
	}
	s.move(PhaseFrozen, 0)
	return s.fix()
}

// fix names the entry being applied as the point of freeze.
func (s *step) fix() error {
	f := &Freeze{Generation: s.ctx.Generation, Epoch: s.ctx.Epoch, Seq: s.ctx.Seq, OutcomeHash: s.state.Outcome.Hash}
	s.state.Freeze = f
	s.emit("deliberatic.frozen", FrozenEvent{Round: s.round.ID, Generation: f.Generation, Epoch: f.Epoch, Seq: f.Seq, OutcomeHash: f.OutcomeHash})
	return s.save(key('f', s.round.ID), FrozenRound{Round: s.round.ID, Freeze: *f})
}

// FrozenRound is a round that waits for a certificate.
type FrozenRound struct {
	Round string `json:"round"`
	Freeze
}

// FrozenRounds lists the rounds that wait for a certificate, ascending by id. tx is this
// machine's. A node starts a PBFT instance for each once it holds the
// checkpoint of the freeze.
func Frozen(tx machine.Tx) ([]FrozenRound, error) {
	var out []FrozenRound
	err := machine.EachRecord(tx, key('f'), "", func(_ string, f *FrozenRound) (bool, error) { out = append(out, *f); return true, nil })
	return out, err
}

// CertDigest is what the voters certify: a pure function of the frozen round
// and the decision log's head at the end of the freeze's entry. outcomeHash is
// 64 hex digits.
func CertDigest(genesis string, generation, epoch uint64, round, outcomeHash string, at machine.Checkpoint) [32]byte {
	return sha256.Sum256(canon.MustMarshal(struct {
		Protocol   string `json:"protocol"`
		Purpose    string `json:"purpose"`
		Genesis    string `json:"genesis"`
		Generation string `json:"generation"` // decimal: a uint64 may exceed what JSON carries
		Epoch      string `json:"epoch"`
		Round      string `json:"round"`
		Outcome    string `json:"outcome_hash"`
		Seq        string `json:"seq"`
		Size       string `json:"size"`
		Root       string `json:"root"`
	}{"deliberd/deliberatic/1", Purpose, genesis, decimal(generation), decimal(epoch), round, outcomeHash, decimal(at.Seq), decimal(at.Size), hex.EncodeToString(at.Root[:])}))
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

// CertifyBody hands in a certificate for a frozen round. Nodes send it.
type CertifyBody struct {
	Round       string          `json:"round"`
	Certificate json.RawMessage `json:"certificate"`
}

func (b *CertifyBody) shape() error {
	if len(b.Certificate) == 0 || b.Certificate[0] != '{' {
		return malformed("hand in the certificate's JSON object", "certificate is no JSON object")
	}
	return names(b.Round)
}

// CertifiedEvent is the data of deliberatic.certified.
type CertifiedEvent struct {
	Round       string             `json:"round"`
	Certificate CertificateSummary `json:"certificate"`
}

// CertificateSummary is what a verdict says of its certificate.
type CertificateSummary struct {
	View       uint64 `json:"view"`
	Signers    int    `json:"signers"`
	Voters     int    `json:"voters"`    // of the epoch
	Tolerance  int    `json:"tolerance"` // Byzantine voters that can be borne: ⌊(n−1)/3⌋
	Epoch      uint64 `json:"epoch"`
	Generation uint64 `json:"generation"`
}

// certify ends a frozen round with the first valid certificate. Every holder
// hands its certificate in, so a later one is answered with what stands.
func (s *step) certify(a *action) (any, error) {
	var body CertifyBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if p, err := s.active(a.actor); err != nil {
		return nil, err
	} else if p.Kind != machine.Node {
		return nil, machine.Refuse(machine.CodeNotAuthorized, "nodes hand in certificates", "%s is no node", a.actor)
	}
	if err := s.open(body.Round); err != nil {
		return nil, err
	}
	if s.state.Phase.Ended() || s.state.Phase == PhaseCertified || s.state.Phase == PhaseReview {
		return s.alreadyDecided()
	}
	if err := s.in(PhaseFrozen); err != nil {
		return nil, machine.Refuse(CodeWrongPhase, "wait for deliberatic.frozen", "round %s is in phase %s, not frozen", s.round.ID, s.state.Phase).With("phase", s.state.Phase)
	}
	sum, err := s.verify(body.Certificate)
	if err != nil {
		return nil, err
	}
	if err := s.Put(key('c', s.round.ID), body.Certificate); err != nil {
		return nil, err
	}
	if err := s.Delete(key('f', s.round.ID)); err != nil {
		return nil, err
	}
	s.state.Certificate = sum
	s.emit("deliberatic.certified", CertifiedEvent{Round: s.round.ID, Certificate: *sum})
	if s.round.Rule == Supermajority {
		s.move(PhaseCertified, s.round.Windows.Confirm)
		err = s.tally()
	} else {
		err = s.conclude(PathConflict)
	}
	if err != nil {
		return nil, err
	}
	return s.answer("")
}

// verify checks a certificate against the voters and the checkpoint of the freeze.
func (s *step) verify(raw json.RawMessage) (*CertificateSummary, error) {
	f := s.state.Freeze
	committee, ok, err := s.ctx.World.Committee(f.Epoch)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, machine.Refuse(CodeNoCommittee, "wait until the epoch has begun", "the voters of epoch %d are unknown", f.Epoch)
	}
	at, ok, err := s.ctx.World.Checkpoint(f.Seq)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, machine.Refuse(CodeNoCheckpoint, "hand it in again in a later entry", "entry %d has no checkpoint yet", f.Seq)
	}
	var cert pbft.Certificate
	if err := canon.DecodeChecked(raw, &cert); err != nil {
		return nil, machine.Refuse(CodeBadCertificate, "hand in what the PBFT instance gave", "not a certificate")
	}
	digest := CertDigest(s.ctx.Genesis, f.Generation, f.Epoch, s.round.ID, f.OutcomeHash, at)
	voters, err := s.voters.prepare(committee)
	if err == nil {
		err = voters.VerifyCertificate(Instance(s.ctx.Genesis, FrozenRound{Round: s.round.ID, Freeze: *f}), digest, cert)
	}
	if err != nil {
		r, ok := machine.IsRefusal(err)
		if !ok {
			return nil, err
		}
		return nil, machine.Refuse(CodeBadCertificate, "hand in what the PBFT instance of this freeze gave", "%s", r.Message).With("cause", r.Code)
	}
	return &CertificateSummary{View: cert.View, Signers: len(cert.Votes), Voters: committee.N(), Tolerance: quorum.F(committee.N()), Epoch: f.Epoch, Generation: f.Generation}, nil
}

// committees keeps the voters whose keys were last made ready to verify: one
// epoch's serve all its certificates.
type committees struct {
	mu    sync.Mutex
	of    machine.Committee
	ready *pbft.Committee
}

func (c *committees) prepare(of machine.Committee) (*pbft.Committee, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ready != nil && c.of.Epoch == of.Epoch && slices.Equal(c.of.Members, of.Members) {
		return c.ready, nil
	}
	ready, err := pbft.NewCommittee(of)
	if err == nil {
		c.of, c.ready = of, ready
	}
	return ready, err
}

// Instance is the PBFT instance that settles a frozen round.
func Instance(genesis string, f FrozenRound) pbft.Instance {
	return pbft.Instance{Protocol: pbft.Protocol, Genesis: genesis, Generation: f.Generation, Epoch: f.Epoch, Purpose: Purpose, ID: f.Round}
}

func (s *step) alreadyDecided() (any, error) {
	v, err := s.verdict(s.round.ID)
	return Answer{Round: s.round.ID, Phase: s.state.Phase, Deadline: s.state.Deadline, Status: "already_decided", Verdict: v}, err
}

// refreeze moves the frozen rounds of an earlier epoch to the present one:
// the voters of an ended epoch no longer sign. The outcome stays as it is.
func (s *step) refreeze() error {
	s.move(PhaseFrozen, 0)
	return s.fix()
}
