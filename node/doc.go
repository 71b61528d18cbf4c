// Package node wires one deliberd node and owns its life: data folder, keys,
// network, Raft, PBFT, doors. It decides nothing; the rules are in the
// machines.
//
// A data folder is founded once, by [Found] (a node named in a genesis) or by
// [Join] (a node with an invitation). After that [Start] runs it, as often as
// one likes. To embed a node in a program:
//
//	n, err := node.Start(ctx, node.Config{Dir: "data", HTTP: "127.0.0.1:7700"})
//	if err != nil { … }
//	defer n.Close()
//	err = n.Wait(ctx) // returns when the node stops by itself
package node
