package demo_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/demo"
	"github.com/deliberd/deliberd/node/embedded"
)

func TestFourNodesPlayTheWholeDemoAndAgree(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	c, err := embedded.Start(ctx, embedded.Config{Dir: dir, HTTP: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	members := map[string]*client.Identity{}
	if err := demo.Cast(ctx, c, members); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	r, err := demo.Play(ctx, c, members, &told)
	t.Log(told.String())
	if err != nil {
		t.Fatal(err)
	}
	clear, close := r.Rounds[0], r.Rounds[1]
	if clear.Path != "fast" || clear.Author != "ada" || clear.Certificate != nil || clear.Gap <= 0.15 || !clear.NodesAgree {
		t.Errorf("clear round: %+v", clear)
	}
	if close.Path != "conflict" || close.Author != "ben" || close.Certificate == nil || close.Certificate.Signers < 3 || close.Gap > 0.15 || !close.NodesAgree {
		t.Errorf("close round: %+v", close)
	}
	for _, round := range r.Rounds {
		if len(round.EvidenceRoot) != 64 || round.VerdictMS <= 0 {
			t.Errorf("round without root or time: %+v", round)
		}
	}
	if r.ACP.Outcome != "rejected" || r.ACP.Trigger != "quorum" || !r.ACP.NodesAgree {
		t.Errorf("ACP: %+v", r.ACP)
	}
	if r.Agora.Outcome != "approved" || r.Agora.Yes != 2 || !r.Agora.NodesAgree {
		t.Errorf("Agora: %+v", r.Agora)
	}
	if _, _, err := c.Agree(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	replayed(t, filepath.Join(dir, "node1"))
}
