package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
)

// Vote as an agent whose key `deliberd agent new` made.
func Example() {
	me, err := client.ReadIdentity("keys/ada.json")
	if err != nil {
		log.Fatal(err)
	}
	c, err := client.New([]string{"http://127.0.0.1:7700", "http://127.0.0.1:7710"}, client.As(me))
	if err != nil {
		log.Fatal(err)
	}
	result, answer, err := c.Agora().Vote(context.Background(), agora.VoteBody{RoundID: "deploy-42", Choice: "yes"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Status, answer.Finality)
}

// Answer whatever one is asked: the loop of an agent.
func ExampleClient_Inbox() {
	var c *client.Client // from client.New
	ctx, version := context.Background(), ""
	for {
		asks, now, err := c.Inbox(ctx, time.Minute, version)
		if err != nil {
			log.Fatal(err)
		}
		version = now
		for _, ask := range asks {
			fmt.Println(ask.Ask, ask.Subject, "answer with", ask.Kind)
		}
	}
}

// Support an equal position instead of repeating its answer.
func ExampleError() {
	var c *client.Client // from client.New
	ctx, round := context.Background(), "01JD0000000000000000000000"
	_, _, err := c.Deliberatic().Position(ctx, deliberation.PositionBody{Round: round, Answer: []byte(`"pump A"`)})
	var e *client.Error
	if errors.As(err, &e) && e.Code == "same_answer" {
		fmt.Println(e.Message, e.Fix, e.Data)
	}
}

// Repeat a write whose outcome is not known: the cluster runs it once.
func ExampleClient_Submit() {
	var c *client.Client // from client.New
	ctx := context.Background()
	action, err := c.Sign(ctx, "agora.evaluate", agora.EvaluateBody{RoundID: "deploy-42"})
	if err != nil {
		log.Fatal(err)
	}
	for {
		answer, err := c.Submit(ctx, action)
		if client.CodeOf(err) == client.CodeUnreachable {
			continue // the same action, under the same id
		}
		fmt.Println(answer.Seq, err)
		return
	}
}

// Follow what concerns me, from where I was.
func ExampleClient_Events() {
	var c *client.Client // from client.New
	for record, err := range c.Events(context.Background(), 0, true) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(record.Index, record.Type, record.Subject)
	}
}

// An identity names itself; its secret stays in the file.
func ExampleNewIdentity() {
	me, err := client.NewIdentity("ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(me.ID, me.PublicJWK().Crv)
	// Output: ada Ed25519
}
