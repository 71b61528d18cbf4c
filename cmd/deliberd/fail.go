package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/merkle"
)

// usageError is a command line or a configuration that cannot be carried out.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// fail prints an error and returns the exit code that goes with it.
func (a *app) fail(err error) int {
	e := describe(err)
	code := exitRefused
	if e.Code == "usage" {
		code = exitUsage
	}
	if a.json {
		enc := json.NewEncoder(a.err)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(map[string]*client.Error{"error": e}) // nowhere left to tell
		return code
	}
	fmt.Fprintf(a.err, "error: %s (%s)\n", strings.TrimSuffix(e.Message, "."), e.Code)
	if e.Fix != "" {
		fmt.Fprintf(a.err, "try: %s\n", e.Fix)
	}
	return code
}

// describe puts any error into the one form in which errors are shown.
func describe(err error) *client.Error {
	var (
		known   *client.Error
		wrong   *usageError
		failure *merkle.Failure
	)
	switch {
	case errors.As(err, &wrong):
		return &client.Error{Code: "usage", Message: wrong.message, Fix: "add --help to see the flags and an example"}
	case errors.As(err, &known):
		e := *known
		e.Fix = typed(e.Fix)
		return &e
	case errors.As(err, &failure):
		return &client.Error{Code: failure.Code, Message: strings.TrimPrefix(failure.Error(), failure.Code+": "), Fix: "get the file again from a node you trust: deliberd evidence export", Data: map[string]any{"leaf": failure.Leaf, "kind": failure.Kind}}
	}
	if r, ok := machine.IsRefusal(err); ok {
		return &client.Error{Code: r.Code, Message: r.Message, Fix: typed(r.Fix), Data: r.Data}
	}
	return &client.Error{Code: "failed", Message: err.Error()}
}
