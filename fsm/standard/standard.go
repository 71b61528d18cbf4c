// Package standard assembles the state machine that every node runs: which
// machines there are, in which order they react, and how a genesis fills
// their first state. Two builds with different assemblies are different
// protocols.
package standard

import (
	"fmt"
	"time"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/registry"
)

// New assembles the state machine. verify checks one signed action; nil means
// the plain check.
func New(verify func(sign.Unverified, sign.PublicKey) (sign.Verified, error)) (*fsm.FSM, error) {
	return fsm.New(fsm.Config{
		Machines:       []machine.Machine{membership.New(), registry.New(), acp.New(), agora.New(), deliberation.New()},
		Directory:      &directory{},
		DirectoryName:  registry.Name,
		Membership:     members{},
		MembershipName: membership.Name,
		Verify:         verify,
	})
}

// Init fills an empty state from a genesis, and gives the state machine the
// genesis's constants ([UseParams]).
func Init(f *fsm.FSM, tx machine.Tx, g membership.Genesis) error {
	created, err := time.Parse(time.RFC3339, g.CreatedAt)
	if err != nil {
		return fmt.Errorf("created_at: %w", err)
	}
	UseParams(f, g)
	return f.Init(tx, g.Hash(), machine.Stamp(created.UnixMilli()), map[string]func(machine.Tx) error{
		membership.Name: func(tx machine.Tx) error { return membership.Init(tx, g) },
		registry.Name: func(tx machine.Tx) error {
			operators := make([]registry.Operator, 0, len(g.Operators))
			for _, o := range g.Operators {
				operators = append(operators, registry.Operator{ID: o.ID, Name: o.Name, JWK: o.JWK})
			}
			return registry.Init(tx, operators, registry.Limits{MaxPrincipalsPerOperator: g.Params.MaxPrincipalsPerOperator})
		},
	})
}

// UseParams gives the state machine the constants its genesis fixes.
func UseParams(f *fsm.FSM, g membership.Genesis) {
	f.SetParams(fsm.Params{
		IDWindow: machine.Stamp(g.Params.IDWindowMS), IDFuture: machine.Stamp(g.Params.IDFutureMS), DumpEvery: uint64(g.Params.DumpEvery),
	})
}

// directory adapts package registry to the state machine.
type directory struct{ read registry.Reader }

func (d *directory) Lookup(tx machine.Tx, id string) (machine.Principal, bool, error) {
	return d.read.Lookup(tx, id)
}

func (d *directory) Key(tx machine.Tx, actor, kid string) (key sign.PublicKey, active, ok bool, err error) {
	key, status, err := d.read.Key(tx, actor, kid)
	return key, status == registry.KeyActive, !key.IsZero(), err
}

func (d *directory) Grant(tx machine.Tx, principal, domain string) (machine.Grant, bool, error) {
	return d.read.GrantFor(tx, principal, domain)
}

func (*directory) Holders(tx machine.Tx, domain string) ([]string, error) {
	return registry.Holders(tx, domain)
}

// members adapts package membership to the state machine.
type members struct{}

func (members) Lookup(tx machine.Tx, node string) (machine.Principal, bool, error) {
	return membership.Lookup(tx, node)
}

func (members) NodeKey(node string) (sign.PublicKey, bool) {
	key, err := membership.NodeKey(node)
	return key, err == nil
}

func (members) Epoch(tx machine.Tx) (uint64, error) { return membership.Epoch(tx) }

func (members) Committee(tx machine.Tx, epoch uint64) (machine.Committee, bool, error) {
	return membership.Committee(tx, epoch)
}
