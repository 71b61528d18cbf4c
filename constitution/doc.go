// Package constitution will hold the normative constraints of Deliberatic §4:
// hard boundaries, soft preferences and amendments, as pure functions of a
// round's facts.
//
// Until it is filled, a round has no constitution: its evidence chain says so
// in the ConstitutionalCheck leaf, and no preference delta applies.
package constitution
