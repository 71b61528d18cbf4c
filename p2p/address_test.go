package p2p

import (
	"crypto/ed25519"
	"crypto/rand"
	"testing"
)

func TestAnAddressThatCannotBeListenedOnIsRefusedBeforeAnyOther(t *testing.T) {
	for _, c := range []struct {
		addr         string
		listen, dial bool
	}{
		{"/ip4/127.0.0.1/tcp/0", true, false},
		{"/ip4/0.0.0.0/tcp/7701", true, true},
		{"/ip6/::1/tcp/7701", true, true},
		{"/dns4/localhost/tcp/7701", true, true},
		{"/dns/node.example/tcp/7701", true, true},
		{"/ip6zone/lo/ip6/fe80::1/tcp/7701", true, true},
		{"/ip4/127.0.0.1/tcp/7701/p2p/12D3KooWGjMCwkHzAvXwCMUNdF1mLzSWbBrXkFF3ufCNRCyrCAAS", false, true},
		{"/p2p/12D3KooWGjMCwkHzAvXwCMUNdF1mLzSWbBrXkFF3ufCNRCyrCAAS", false, false},
		{"/ip4/127.0.0.1", false, false},
		{"/ip4/127.0.0.1/udp/7701/quic-v1", false, false},
		{"/ip4/127.0.0.1/tcp/7701/ws", false, false},
		{"/ip4/127.0.0.1/tcp/77010", false, false},
		{"127.0.0.1:7701", false, false},
		{"", false, false},
	} {
		if err := CheckListen(c.addr); (err == nil) != c.listen || err != nil && code(err) != CodeBadAddress {
			t.Errorf("listening on %q: %v", c.addr, err)
		}
		if err := CheckDial(c.addr); (err == nil) != c.dial || err != nil && code(err) != CodeBadAddress {
			t.Errorf("dialling %q: %v", c.addr, err)
		}
		if c.listen {
			continue
		}
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		h, err := New(Config{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0", c.addr}, Genesis: genesis, Admit: func(string) bool { return true }})
		if code(err) != CodeBadAddress {
			t.Errorf("a host on %q: %v", c.addr, err)
		}
		if err == nil {
			_ = h.Close()
		}
	}
}
