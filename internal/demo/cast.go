package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node/embedded"
	"github.com/deliberd/deliberd/registry"
)

// domain is where the cast holds authority.
const domain = "ops.storage"

// role is one member of the cast.
type role struct {
	name             string
	kind             machine.PrincipalKind
	authority, trust string
}

// roles are the cast: names tell agents apart, nothing more.
var roles = []role{
	{"ada", machine.Agent, "0.95", "0.95"},
	{"ben", machine.Agent, "0.4", "0.7"},
	{"cyd", machine.Agent, "0.8", "0.9"},
	{"dee", machine.Agent, "0.8", "0.9"},
	{"eve", machine.Agent, "0.9", "0.9"},
	{"kim", machine.Human, "1", "1"},
}

// participants are the agents among the roles.
var participants = []string{"ada", "ben", "cyd", "dee", "eve"}

// Cast registers the demo's agents with an operator and gives them authority.
// names not registered yet only: a cast found in members is used again.
func Cast(ctx context.Context, c *embedded.Cluster, members map[string]*client.Identity) error {
	op, err := c.Client(c.Operator())
	if err != nil {
		return err
	}
	for _, r := range roles {
		if members[r.name] != nil {
			continue
		}
		id, err := client.NewIdentity(r.name)
		if err != nil {
			return err
		}
		id.Cluster = c.Operator().Cluster
		body, err := registry.NewRegister(id.Cluster, embedded.OperatorID, id.ID, r.kind, strings.ToUpper(r.name[:1])+r.name[1:], id.Key())
		if err != nil {
			return err
		}
		if _, err := op.Do(ctx, "registry.register", body); err != nil {
			return fmt.Errorf("register %s: %w", r.name, err)
		}
		grant := registry.Grant{Principal: r.name, Pattern: "ops.*", Authority: registry.NewDecimal(r.authority), Trust: registry.NewDecimal(r.trust)}
		if _, err := op.Do(ctx, "registry.grant", grant); err != nil {
			return fmt.Errorf("grant to %s: %w", r.name, err)
		}
		members[r.name] = id
	}
	return nil
}
