package deliberation

import "slices"

// memo is what a step has read of its round: a verdict needs the same records
// many times over. Writing forgets what it makes untrue.
type memo struct {
	parts []*Member
	args  []*Argument
}

// members lists the participants that have acted, ascending by id. Whoever
// changes one saves it.
func (s *step) members() (_ []*Member, err error) {
	if s.read.parts == nil {
		s.read.parts, err = s.book.members(s.round.ID)
	}
	return s.read.parts, err
}

// saveMember writes a participant's part, one of members or another copy of it.
func (s *step) saveMember(m *Member) error {
	if !slices.Contains(s.read.parts, m) {
		s.read.parts = nil
	}
	return s.book.saveMember(s.round.ID, m)
}

// arguments lists the round's arguments, ascending by id. Nobody changes them.
func (s *step) arguments() (_ []*Argument, err error) {
	if s.read.args == nil {
		s.read.args, err = s.book.arguments(s.round.ID)
	}
	return s.read.args, err
}

func (s *step) saveArgument(arg *Argument) error {
	s.read.args = nil
	return s.save(key('a', s.round.ID, arg.ID), arg)
}
