package membership

import (
	"strings"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func sampleInvitation(t testing.TB) Invitation {
	c := cluster{machinetest.New(t, New()), t}
	i := c.invitation("x", RoleVoter)
	i.ExpiresMS = 1793696400000
	i.Addrs = []string{"/ip4/10.0.0.1/tcp/7701/p2p/" + nodeID(t, "node0"), "/dns4/b.example/tcp/7701/p2p/" + nodeID(t, "node1")}
	return i
}

func TestAnInvitationSurvivesItsText(t *testing.T) {
	i := sampleInvitation(t)
	text := i.Encode()
	if strings.ContainsAny(text, " \r\n") || !strings.HasPrefix(text, InvitationPrefix) {
		t.Fatalf("not one word: %q", text)
	}
	got, err := ParseInvitation("  " + text + "\n")
	if err != nil || got.Encode() != text {
		t.Fatalf("%+v, %v", got, err)
	}
	key, err := got.Key()
	if err != nil || key.KID() != keyOf(t, "invitation x").KID() {
		t.Fatalf("another key: %v", err)
	}
	if err := got.CheckGenesis(machinetest.Genesis); err != nil {
		t.Fatal(err)
	}
	if err := got.CheckGenesis(strings.Repeat("0", 64)); code(err) != CodeWrongGenesis {
		t.Fatal(err)
	}
}

func TestEveryWrongCharacterOfAnInvitationIsFound(t *testing.T) {
	text := sampleInvitation(t).Encode()
	for at := range text {
		for _, b := range []byte{'A', '_', ' ', '='} {
			changed := text[:at] + string(b) + text[at+1:]
			if strings.TrimSpace(changed) == text {
				continue
			}
			if _, err := ParseInvitation(changed); code(err) != CodeBadInvitation {
				t.Fatalf("%q at %d: %v", b, at, err)
			}
		}
		if _, err := ParseInvitation(text[:at]); code(err) != CodeBadInvitation {
			t.Fatalf("cut at %d: %v", at, err)
		}
	}
}

func TestAnInvitationThatSaysNonsenseIsRefused(t *testing.T) {
	for name, change := range map[string]func(*Invitation){
		"genesis":      func(i *Invitation) { i.Genesis = "AB" },
		"seed":         func(i *Invitation) { i.Seed = "short" },
		"role":         func(i *Invitation) { i.Role = RoleJoining },
		"expiry":       func(i *Invitation) { i.ExpiresMS = 0 },
		"no address":   func(i *Invitation) { i.Addrs = nil },
		"empty list":   func(i *Invitation) { i.Addrs = []string{} },
		"bad address":  func(i *Invitation) { i.Addrs = []string{"10.0.0.1"} },
		"many address": func(i *Invitation) { i.Addrs = make([]string, MaxInvitationAddrs+1) },
	} {
		i := sampleInvitation(t)
		change(&i)
		_, err := ParseInvitation(i.Encode())
		if code(err) != CodeBadInvitation {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && i.Seed != "short" && strings.Contains(err.Error(), i.Seed) {
			t.Errorf("%s: the error shows the seed", name)
		}
	}
}

func FuzzParseInvitation(f *testing.F) {
	f.Add(sampleInvitation(f).Encode())
	f.Add(InvitationPrefix + "e30AAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, line string) {
		i, err := ParseInvitation(line)
		if err != nil {
			if code(err) != CodeBadInvitation {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		if i.Encode() != strings.TrimSpace(line) {
			t.Fatalf("%q was read as %q", line, i.Encode())
		}
	})
}

// FuzzInvitationBody gives what stands inside a text with a right checksum.
func FuzzInvitationBody(f *testing.F) {
	f.Add(canon.MustMarshal(sampleInvitation(f)))
	f.Add([]byte(`{"genesis":"","seed":"","role":"voter","expires_ms":1,"addrs":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		line := wrap(body)
		i, err := ParseInvitation(line)
		if err != nil {
			if code(err) != CodeBadInvitation {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		if i.Encode() != line {
			t.Fatalf("%q was read as %q", line, i.Encode())
		}
	})
}
