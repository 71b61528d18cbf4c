// Package p2p carries frames between nodes over libp2p: one host with an
// Ed25519 identity, TCP with Noise and yamux, no relay, no NAT traversal, no
// discovery.
//
// Who may connect is decided by the caller's [Admission] right after the
// handshake that authenticates the peer id, before any stream is opened:
// members by their id, a joiner by the key of its invitation, which is then
// its host's identity. Members that have been removed may still connect, but
// hear only that, on whatever stream they open. Every stream begins with a hello of genesis hash and
// generation, so nodes of two clusters never exchange more than that.
//
// Three ways to talk, all in bounded frames with deadlines, on streams that
// are reset at the first error:
//
//   - [Host.Call] and [Host.Handle]: a request and its response;
//   - [Host.Send] and [Host.HandleFrames]: one-way frames in order, from a
//     queue that reconnects; frames in flight when a connection breaks are lost;
//   - [Host.Open] and [Host.HandleStream]: a stream for whatever else.
//
// A handler's [machine.Refusal] arrives at the caller as one, with its code.
package p2p
