package agora_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/internal/vectors"
	"github.com/deliberd/deliberd/machine"
)

func TestVectorsAgora(t *testing.T) {
	vectors.Run(t, "agora", map[string]func(*testing.T, json.RawMessage){
		"round":      vectorRound,
		"fraction":   vectorFraction,
		"propose":    vectorPropose,
		"vote_error": vectorVoteError,
		"note":       vectorNote,
	})
}

// proposal is a ProposalInput as the README writes it.
type proposal struct {
	ID         string
	ProposerID string
	Action     json.RawMessage
	Voters     []string
	Vetoers    []string
	Quorum     json.RawMessage
	Deadline   *int64
}

func (p proposal) propose() (*agora.Round, error) {
	quorum, err := agora.ParseQuorum(p.Quorum)
	if err != nil {
		return nil, err
	}
	in := agora.Proposal{ID: p.ID, ProposerID: p.ProposerID, Action: p.Action, Vetoers: p.Vetoers, Quorum: quorum, Deadline: p.Deadline}
	for _, id := range p.Voters {
		in.Voters = append(in.Voters, agora.Voter{ID: id})
	}
	return agora.Propose(in)
}

// named is an error under the name the README or the vectors give it.
func named(err error) string {
	if err == nil {
		return "ok"
	}
	r, ok := machine.IsRefusal(err)
	if !ok {
		return err.Error()
	}
	names := map[string]string{
		agora.CodeInvalidProposal: "InvalidProposalError",
		agora.CodeNotAVoter:       "NotAVoterError",
		agora.CodeNotAVetoer:      "NotAVetoerError",
		agora.CodeResolved:        "RoundAlreadyResolvedError",
	}
	if name, ok := names[r.Code]; ok {
		return name
	}
	return r.Code
}

type resolution struct {
	Outcome    agora.Outcome
	Tally      agora.Tally
	ResolvedAt int64
	Veto       *struct{ AgentID, Reason string }
}

func vectorRound(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Proposal proposal
		Propose  string
		Steps    []struct {
			Do      string
			AgentID string
			Choice  agora.Choice
			Reason  string
			Now     int64
			Expect  json.RawMessage
			Tally   *agora.Tally
		}
	}](t, raw)
	r, err := v.Proposal.propose()
	if named(err) != v.Propose {
		t.Fatalf("propose gave %v, want %s", err, v.Propose)
	}
	for i, s := range v.Steps {
		switch s.Do {
		case "vote":
			err = r.CastVote(agora.Vote{AgentID: s.AgentID, Choice: s.Choice, Reason: s.Reason})
		case "veto":
			err = r.CastVeto(agora.Veto{AgentID: s.AgentID, Reason: s.Reason})
		case "evaluate":
			want := vectors.As[*resolution](t, s.Expect)
			checkResolution(t, i, r.Evaluate(s.Now), want)
			continue
		default:
			t.Fatalf("no test knows the step %q", s.Do)
		}
		if want := vectors.As[string](t, s.Expect); named(err) != want {
			t.Fatalf("step %d (%s): got %v, want %s", i, s.Do, err, want)
		}
		if got := r.Tally(); s.Tally != nil && got != *s.Tally {
			t.Fatalf("step %d (%s): tally %+v, want %+v", i, s.Do, got, *s.Tally)
		}
		restored, err := agora.FromState(r.ToState())
		if err != nil || !reflect.DeepEqual(restored.ToState(), r.ToState()) || restored.Tally() != r.Tally() {
			t.Fatalf("step %d (%s): restoring gave %v, %v", i, s.Do, restored, err)
		}
		r = restored // from here on with the restored one: it must do the same
	}
}

func checkResolution(t *testing.T, i int, got *agora.Resolution, want *resolution) {
	t.Helper()
	if got == nil || want == nil {
		if (got == nil) != (want == nil) {
			t.Fatalf("step %d: resolution %+v, want %+v", i, got, want)
		}
		return
	}
	if got.Outcome != want.Outcome || got.Tally != want.Tally || got.ResolvedAt != want.ResolvedAt || (got.Veto == nil) != (want.Veto == nil) {
		t.Fatalf("step %d: resolution %+v, want %+v", i, got, want)
	}
	if want.Veto != nil && (got.Veto.AgentID != want.Veto.AgentID || got.Veto.Reason != want.Veto.Reason) {
		t.Fatalf("step %d: veto %+v, want %+v", i, got.Veto, want.Veto)
	}
}

func vectorFraction(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Registered uint64
		Value      float64
		Needed     uint64
	}](t, raw)
	if got, ok := agora.Fraction(v.Value).Needed(v.Registered); got != v.Needed || !ok {
		t.Fatalf("needs %d (%v), want %d", got, ok, v.Needed)
	}
}

func vectorPropose(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Proposal proposal
		Expect   string
	}](t, raw)
	if _, err := v.Proposal.propose(); named(err) != v.Expect {
		t.Fatalf("got %v, want %s", err, v.Expect)
	}
}

func vectorVoteError(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Proposal proposal
		Vote     struct {
			AgentID string
			Choice  agora.Choice
		}
	}](t, raw)
	r, err := v.Proposal.propose()
	if err != nil {
		t.Fatal(err)
	}
	before := r.Tally()
	if err := r.CastVote(agora.Vote{AgentID: v.Vote.AgentID, Choice: v.Vote.Choice}); err == nil || r.Tally() != before {
		t.Fatalf("got %v and tally %+v, want a refusal and %+v", err, r.Tally(), before)
	}
}

func vectorNote(t *testing.T, raw json.RawMessage) {
	if vectors.As[struct{ Note string }](t, raw).Note == "" {
		t.Fatal("a note without text")
	}
}
