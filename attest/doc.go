// Package attest will make the decision log final: checkpoints signed by the
// voters of an epoch in two phases (seen, final), proofs of guilt, and stop.
// It has the shape of package pbft: Step and Tick in, Ready out.
//
// Until it is filled, every answer of the cluster has finality "ordered".
package attest
