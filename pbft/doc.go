// Package pbft decides one value among the voters of one epoch, of whom up to
// f = ⌊(n−1)/3⌋ may lie, and leaves a certificate that anybody can check: q
// signed commits, q = ⌈(n+f+1)/2⌉ (package quorum). It is the three-phase
// protocol of Castro and Liskov for a single decision, without checkpoints or
// sequence numbers.
//
// # The protocol
//
// In view v the primary, chosen in turn from a start that the instance's key
// picks, names a value (pre-prepare); the others accept it (prepare); who holds
// q acceptances of one value, the primary's pre-prepare among them or not, keeps
// them as a prepared certificate and commits; q commits of one view decide.
// A replica whose view's timer ends, or that sees f+1 voters beyond its view,
// enters a later view by a view change that carries its highest prepared
// certificate. That view's primary opens it by a pre-prepare which quotes q view
// changes and proposes the value prepared in the highest view ([Highest]), or
// its own when nothing is prepared. Timers run in ticks, double from view to
// view, and run only once q voters have reached the view. A decided replica
// changes views no more and answers whoever still votes with the certificate.
//
// In view 0 nothing can be prepared yet, so a replica that knows the only value
// it may accept ([Config].Expected) sends its prepare at once, beside the
// pre-prepare and not after it. A silent first primary then costs no time.
//
// # Signatures
//
// Votes travel in frames: one Ed25519 signature over the domain (protocol,
// genesis, generation, epoch, purpose "frame") and the list of the hashes of
// votes, perhaps of many instances. A vote names its instance by a hash of
// protocol, genesis, generation, epoch, purpose and id; its view, phase and
// digest. A vote with its frame's hash list and signature is provable alone
// ([Proof]): certificates, view changes and guilt proofs are made of these.
// Verification follows ZIP-215, so single and batched checks agree everywhere.
//
// # What the caller must do
//
// An [Engine] starts no goroutine and knows no clock, socket or file. Whoever
// drives it:
//
//  1. passes each frame from the network through [Decode] and [Committee.Verify]
//     or [Committee.VerifyAll] to [Engine.Step], certificates through
//     [Committee.CheckCertificate] to [Engine.StepCertificate], and calls
//     [Engine.Tick] at a steady pace. [Engine.Wants] tells beforehand what is
//     not worth verifying. The frame's sender should be its signer: nothing
//     else is ever relayed, and buffers are bounded per sender by it.
//  2. after each of these takes [Engine.Ready] while [Engine.HasReady], and in
//     this order: signs Votes into frames of at most [MaxVotes] votes and
//     [MaxFrame] bytes with [Committee.Sign]; stores these frames and Prepared
//     so that they survive a crash (fsync); calls [Engine.Advance] with the
//     stored frames; sends them to every other member. One frame and one fsync
//     may serve many instances.
//  3. sends Resend as stored, to all; sends the decision to each of Answers;
//     hands Decided and Guilt to whoever needs them. None of these waits for
//     the disk.
//  4. when storing fails, stops: it must sign nothing more for any instance of
//     the epoch, since what reached the disk is unknown.
//  5. after a restart passes all that was stored as [Config].Restored. Without
//     it a replica must not take part until it has a new key: it could vote
//     differently from before and be guilty.
//  6. uses one key in one process, and the same [Config].Expected or an equal
//     Validate for the instance as long as it has not restarted. All honest
//     members must answer alike, or no decision may come; never two.
//  7. without [Config].Expected calls [Engine.Propose] with the value that it
//     would have decided: a primary without one opens no view.
//
// Refusals are [machine.Refusal] values with the codes of this package;
// machine.IsRefusal finds the first in an error, errors.As each of a join.
//
// docs/pbft.md says for each property where it is kept and which test catches
// its absence.
//
// A committee, frames and certificates are immutable and may be shared between
// goroutines; an engine may not.
package pbft
