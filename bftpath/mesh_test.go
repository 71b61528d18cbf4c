package bftpath

import (
	"crypto/ed25519"
	"log/slog"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/p2p"
)

// mesh is libp2p hosts over loopback that know each other.
type mesh struct {
	t     testing.TB
	hosts []*p2p.Host
	ids   []string
}

func newMesh(t testing.TB, n int) *mesh {
	m := &mesh{t: t}
	for range n {
		_, key, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := p2p.New(p2p.Config{
			Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Genesis: testGenesis, Logger: slog.New(slog.DiscardHandler),
			Admit: func(id string) bool { return slices.Contains(m.ids, id) },
		})
		if err != nil {
			t.Fatal(err)
		}
		m.hosts, m.ids = append(m.hosts, h), append(m.ids, h.ID())
		t.Cleanup(func() {
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	for i, h := range m.hosts {
		for j, o := range m.hosts {
			if i != j {
				if err := h.SetAddrs(o.ID(), o.Addrs()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return m
}

// carry lets frames of a protocol arrive.
func (m *mesh) carry(proto string, arrive func(from, to int, frame []byte)) {
	for to, h := range m.hosts {
		h.HandleFrames(proto, func(from string, frame []byte) error {
			arrive(slices.Index(m.ids, from), to, frame)
			return nil
		})
	}
}

func (m *mesh) send(proto string, from, to int, frame []byte) {
	if err := m.hosts[from].Send(m.ids[to], proto, frame); err != nil {
		m.t.Error(err)
	}
}
