package acp_test

import (
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
)

func canonical(t testing.TB, v any) []byte {
	t.Helper()
	text, err := canon.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
