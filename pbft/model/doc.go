// Package model describes package pbft's protocol a second time, small enough to
// try everything: four members of whom one is Byzantine, two values, two or three
// views. Its tests visit every state of this description, and hold the real
// engine against it in every state.
//
// # The description
//
// Read it in this order, and PBFT with it:
//
//  1. state.go: the global state is nothing but the votes that honest members
//     have signed. There is no network in it: a vote that was cast may arrive
//     anywhere, at any later time, any number of times, or never.
//  2. rules.go: when an honest member may cast a vote, given what it has
//     signed and heard ([Protocol.Enabled]). It is a list of guarded actions, as in a TLA+
//     specification: pre-prepare, prepare, commit, view change.
//  3. explore.go: what a Byzantine member can sign so that others take it
//     ([Model.Castable]), what must hold in every state ([Model.Unsafe]), and the
//     search through all of them ([Model.Explore]).
//
// Members may prefer either value, so the primary of a view that is free to choose
// chooses both ways. A member may leave its view at any time: safety rests on
// no timer. Nothing is said here about progress, which package sim shows.
//
// # What holds in every state
//
// With one Byzantine member, whichever it is, in no reachable state
//
//   - can two values be certified, in one view or in two;
//   - can two values be prepared in one view;
//   - can a value be prepared in a view above one in which another could be certified.
//
// "Can" counts what the Byzantine member could add by itself at once.
//
//	          Byzantine: primary of view 0   view 1    view 2    none
//	two views   states              8,356     8,428       –      2,932
//	            transitions        18,216    19,050       –      6,274
//	three views states            310,488   320,772   274,914   109,510
//	            transitions       679,055   706,362   628,388   238,969
//
// States of three views stand for their mirror image, A and B exchanged, too.
// As controls, any two Byzantine members and a quorum of two break agreement, in
// four or five steps that the tests print.
//
// # The engine against the description
//
// The joint states of three engines are too many, but an engine acts on nothing
// except what it has signed, heard and stored. So each member's engine is explored
// alone, among votes that can be cast together: a vote reaches it only if some
// reachable state has this member's own votes and all the heard ones. If each
// engine casts only what the rules allow on what it heard, then no run of
// the three leaves the reachable states, by induction over the votes cast.
//
// Nothing less than allowed: TestEngineTakesEveryTransitionOfTheSpecification takes every
// action of every honest member in every reachable state of two views (22,648
// states, 49,814 actions, four seats). A real engine is restored with this member's
// votes from disk and given each smallest set of messages that enables the
// action; it takes it. This is the correspondence: a member of the description
// is an engine's disk, and what is castable in the state is what the engine may hear.
//
// Nothing more than allowed, and eagerly: TestEngineCastsWhatTheSpecificationAllowsAndNothingElse
// follows an engine through all orders of votes heard (one of each sender and
// slot; whatever else the sender says in a slot changes nothing, which is checked in each
// state), of its timer's end, its own proposal, and restarts from disk. All
// votes it casts are allowed; at rest, no allowed one is missing except those for which a timer
// must end or a value must be proposed; it has decided if and only if it holds a
// quorum of commits. A state is all that the engine holds, read by reflection
// (fingerprint_test.go lists what is left out and why), so no order of events is
// taken to be like another unless it left the engine in the same state.
//
// What engines refuse is tried apart, because it rests on proofs and not on
// state: every new view over every set of view changes and certificates (14,496),
// and every view change and new view with every set of acceptances as its
// certificate (1,620 and 486), of three views.
//
// # Bounds
//
// The default run explores, in two views, 151,629 states of the engines of
// members 0, 1 and 3 without commits of others, and 34,191 of members 1 and 3 with
// all commits and few other votes. In it, a member that has entered view 1
// restarts once it has stored its vote there. -model.full lifts these bounds one
// at a time: all commits with few prepares (1,964,852 states), no restart forced
// (some 700,000), and events while votes are being stored (1,499,486 of member 0
// alone). All bounds at once are not lifted: 200 million combinations of votes.
//
// Out of the model's sight: more than three views, so windows of votes and
// MaxView; resends, answers and timers' lengths; several instances in one frame;
// Expected, whose eager prepare is another rule for view 0; real signatures.
package model
