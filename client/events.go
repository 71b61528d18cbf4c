package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Head is the place at which [Client.Events] hands out new events only.
const Head = math.MaxUint64

// Events follows the decision log from after leaf number since, or from
// [Head]; with mine, only what concerns the client's principal. It reconnects,
// here or at another node, and resumes where it was. It ends when ctx ends
// (without an error), or with the error that no node could help.
func (c *Client) Events(ctx context.Context, since uint64, mine bool) iter.Seq2[Record, error] {
	return c.follow(ctx, following{c: c, at: since, mine: mine})
}

// EventsOf is [Client.Events] of one subject only, such as a round.
func (c *Client) EventsOf(ctx context.Context, subject string, since uint64) iter.Seq2[Record, error] {
	return c.follow(ctx, following{c: c, at: since, subject: subject})
}

func (c *Client) follow(ctx context.Context, from following) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		place := from // each use of the sequence begins there
		f := &place
		f.yield = yield
		failures := 0
		for ctx.Err() == nil {
			before := f.at
			err := f.connect(ctx)
			if f.done || ctx.Err() != nil {
				return
			}
			if f.at != before {
				failures = 0
			}
			var e *Error
			if !errors.As(err, &e) || !e.elsewhere() && e.Code != api.CodeSlowReader && e.Code != token.CodeExpired {
				yield(Record{}, err)
				return
			}
			if e.Code == token.CodeExpired {
				if _, err := f.c.bearer(ctx, true); err != nil {
					yield(Record{}, err)
					return
				}
			}
			if failures++; failures > 4*len(c.endpoints) {
				yield(Record{}, err)
				return
			}
			c.at.Add(1)
			select {
			case <-time.After(min(firstPause<<failures, longPause)):
			case <-ctx.Done():
			}
		}
	}
}

type following struct {
	c       *Client
	at      uint64
	mine    bool
	subject string // empty: of everything
	yield   func(Record, error) bool
	done    bool // the reader wants no more
}

// connect follows at one node until the stream ends, and says why.
func (f *following) connect(ctx context.Context) error {
	bearer, err := f.c.bearer(ctx, false)
	if err != nil {
		return err
	}
	at := f.c.endpoint()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at+"/events", nil)
	if err != nil {
		return err
	}
	query := url.Values{}
	if f.mine {
		query.Set("for", "me")
	}
	if f.subject != "" {
		query.Set("subject", f.subject)
	}
	req.URL.RawQuery = query.Encode()
	req.Header.Set("Authorization", "Bearer "+bearer)
	if f.at != Head {
		req.Header.Set("Last-Event-ID", strconv.FormatUint(f.at, 10))
	}
	res, err := f.c.http.Do(req)
	if err != nil {
		return unreachable(at, err)
	}
	defer func() { _ = res.Body.Close() }() // the stream is over either way
	if res.StatusCode != http.StatusOK {
		return refusalOf(at, res)
	}
	return f.read(at, bufio.NewReader(res.Body))
}

func refusalOf(at string, res *http.Response) error {
	var body struct {
		Error *machine.Refusal `json:"error"`
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return unreachable(at, err)
	}
	if err := json.Unmarshal(text, &body); err != nil || body.Error == nil {
		return badAnswer(at, res)
	}
	return fromRefusal(body.Error)
}

// read takes messages off a stream (the text/event-stream format of HTML).
func (f *following) read(at string, in *bufio.Reader) error {
	var event, data string
	id := f.at
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return unreachable(at, err)
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case strings.TrimRight(line, "\r\n") == "":
			if err := f.deliver(id, event, data); err != nil || f.done {
				return err
			}
			event, data, id = "", "", f.at
		case name == "id":
			if n, err := strconv.ParseUint(value, 10, 63); err == nil {
				id = n
			}
		case name == "event":
			event = value
		case name == "data":
			data = value
		}
	}
}

func (f *following) deliver(id uint64, event, data string) error {
	switch {
	case data == "":
		f.at = id // a heartbeat moves the place along
		return nil
	case event == "cut":
		var r struct {
			machine.Refusal
			ResumeAfter uint64 `json:"resume_after"`
		}
		if err := json.Unmarshal([]byte(data), &r); err != nil {
			return &Error{Code: CodeBadAnswer, Message: "The stream ended with a message that cannot be read.", Fix: "use a client of the node's version", cause: err}
		}
		f.at = r.ResumeAfter
		return fromRefusal(&r.Refusal)
	}
	var rec Record
	if err := json.Unmarshal([]byte(data), &rec); err != nil {
		return &Error{Code: CodeBadAnswer, Message: fmt.Sprintf("An event of type %.64q cannot be read: %v.", event, err), Fix: "use a client of the node's version", cause: err}
	}
	f.at = rec.Index
	f.done = !f.yield(rec, nil)
	return nil
}
