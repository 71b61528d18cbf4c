// Package client is the Go SDK of deliberd: sign actions and submit them, run
// queries, wait for what one is asked, follow the events.
//
//	me, err := client.ReadIdentity("ada.json")
//	c, err := client.New([]string{"http://127.0.0.1:7700"}, client.As(me))
//	answer, err := c.Do(ctx, "agora.vote", agora.VoteBody{…})
//
// A client knows one or more nodes and keeps to the one that answers. When a
// node cannot be reached or has no leader, the same signed action goes to the
// next: its id makes that safe, the cluster runs an action once and repeats
// the first answer. Errors are [*Error] with the stable code of the cluster's
// refusal, a sentence, and what to do next.
//
// A [Client] is safe for concurrent use.
package client
