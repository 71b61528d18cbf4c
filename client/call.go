package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/deliberd/deliberd/internal/token"
)

const (
	attemptTime = 40 * time.Second // one request at most, besides a long poll's own wait
	maxAnswer   = 64 << 20         // bytes
	tokenLife   = 10 * time.Minute
	firstPause  = 50 * time.Millisecond
	longPause   = time.Second
)

// call runs one method, at another node or again while nodes cannot serve.
func (c *Client) call(ctx context.Context, method string, params json.RawMessage, read bool, wait time.Duration, out any) error {
	deadline := time.Now().Add(c.patience)
	pause, unheard, slow := firstPause, 0, 0
	for {
		began, limit := time.Now(), wait+c.attempt(slow)
		result, err := c.once(ctx, method, params, read, limit)
		if err == nil {
			return decodeResult(method, result, out)
		}
		var e *Error
		if !errors.As(err, &e) || !e.elsewhere() {
			return err
		}
		if unheard++; e.Code != CodeUnreachable {
			unheard = 0
		}
		if time.Since(began) >= limit {
			slow++
		}
		// When nobody at all can be reached, two rounds are enough to tell.
		if time.Now().After(deadline) || unheard >= 2*len(c.endpoints) {
			return err
		}
		if c.at.Add(1)%uint32(len(c.endpoints)) == 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return err
			}
			pause = min(2*pause, longPause)
		}
	}
}

// attempt bounds one request, besides a long poll's own wait, after so many
// of the call have run out of time. Where there is another node to ask, the
// first is short: a node that has stopped, or has lost the others, must not
// use up all patience. Later ones are longer, for a cluster that is slow.
func (c *Client) attempt(slow int) time.Duration {
	if len(c.endpoints) == 1 {
		return attemptTime
	}
	return min(max(c.patience/4, time.Second)<<min(slow, 6), attemptTime)
}

func (c *Client) endpoint() string { return c.endpoints[c.at.Load()%uint32(len(c.endpoints))] }

// once runs one method at one node; a token that has expired on the way is renewed once.
func (c *Client) once(ctx context.Context, method string, params json.RawMessage, read bool, limit time.Duration) (json.RawMessage, error) {
	if !read {
		return c.post(ctx, method, params, "", limit)
	}
	bearer, err := c.bearer(ctx, false)
	if err != nil {
		return nil, err
	}
	result, err := c.post(ctx, method, params, bearer, limit)
	if CodeOf(err) != token.CodeExpired {
		return result, err
	}
	if bearer, err = c.bearer(ctx, true); err != nil {
		return nil, err
	}
	return c.post(ctx, method, params, bearer, limit)
}

// bearer is the current token, a new one when it nears its end.
func (c *Client) bearer(ctx context.Context, fresh bool) (string, error) {
	if c.me == nil {
		return "", noIdentity()
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.token == "" || fresh || now.After(c.renew) {
		text, err := token.Make(c.me.key, cluster, c.me.ID, now, tokenLife)
		if err != nil {
			return "", err
		}
		c.token, c.renew = text, now.Add(tokenLife/2)
	}
	return c.token, nil
}

type rpcRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      int             `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type rpcResponse struct {
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
		Data    struct {
			Code    string         `json:"code"`
			Fix     string         `json:"fix"`
			Details map[string]any `json:"details"`
		} `json:"data"`
	} `json:"error"`
}

func (c *Client) post(ctx context.Context, method string, params json.RawMessage, bearer string, limit time.Duration) (json.RawMessage, error) {
	body, err := encode(rpcRequest{"2.0", 1, method, params})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	at := c.endpoint()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at+"/rpc", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, unreachable(at, err)
	}
	defer func() { _ = res.Body.Close() }() // all of it has been read
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, unreachable(at, err)
	}
	var out rpcResponse
	if err := json.Unmarshal(text, &out); err != nil || out.Result == nil && out.Error == nil {
		return nil, badAnswer(at, res)
	}
	if e := out.Error; e != nil {
		return nil, &Error{Code: e.Data.Code, Message: e.Message, Fix: e.Data.Fix, Data: e.Data.Details}
	}
	return out.Result, nil
}

// encode keeps texts as they are: no escaping meant for HTML.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return buf.Bytes(), err
}

func decodeResult(method string, result json.RawMessage, out any) error {
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(result, out); err != nil {
		return &Error{Code: CodeBadAnswer, Message: fmt.Sprintf("The result of %s cannot be read: %v.", method, err), Fix: "use a client of the node's version", cause: err}
	}
	return nil
}

func unreachable(at string, err error) *Error {
	return &Error{Code: CodeUnreachable, Message: fmt.Sprintf("The node at %s cannot be reached: %v.", at, rootCause(err)), Fix: "start the node, or name another with --node", cause: err}
}

// badAnswer tells of something that is no node: gateways that answer for a
// node which is down are told apart, since another node may be well.
func badAnswer(at string, res *http.Response) *Error {
	e := &Error{Code: CodeBadAnswer, Message: fmt.Sprintf("What answers at %s (HTTP %s) is no deliberd node.", at, res.Status), Fix: "check the node's address"}
	switch res.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		e.Code = CodeUnreachable
	}
	return e
}

// rootCause leaves out the layers that repeat the URL.
func rootCause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
