package registry

import "github.com/deliberd/deliberd/machine"

// Ungranted is the data of registry.ungranted.
type Ungranted struct {
	Principal string `json:"principal"`
	Pattern   string `json:"pattern"`
}

// grant gives a principal authority and trust; the data of registry.granted
// is the machine.Grant.
func (s *step) grant() (any, []machine.Event, error) {
	b, err := decode[Grant](s.action.Body)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.changeable(b.Principal, false)
	if err != nil {
		return nil, nil, err
	}
	g := machine.Grant{Principal: p.ID, Pattern: b.Pattern, Authority: b.Authority.String(), Trust: b.Trust.String()}
	if err := s.saveGrant(p.ID, g.Pattern, &grantRecord{Authority: g.Authority, Trust: g.Trust, Since: s.ctx.Now}); err != nil {
		return nil, nil, err
	}
	return g, s.event("registry.granted", p.ID, g, p.ID, p.Operator), nil
}

func (s *step) ungrant() (any, []machine.Event, error) {
	b, err := decode[Ungrant](s.action.Body)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.changeable(b.Principal, false)
	if err != nil {
		return nil, nil, err
	}
	g, err := s.grantOf(p.ID, b.Pattern)
	if err != nil {
		return nil, nil, err
	}
	if g == nil {
		return nil, nil, machine.Refuse(machine.CodeNotFound, "registry.grants lists them", "%s holds no grant under %q", p.ID, b.Pattern)
	}
	if err := s.dropGrant(p.ID, b.Pattern); err != nil {
		return nil, nil, err
	}
	data := Ungranted{Principal: p.ID, Pattern: b.Pattern}
	return data, s.event("registry.ungranted", p.ID, data, p.ID, p.Operator), nil
}
