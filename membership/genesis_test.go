package membership

import (
	"strings"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func TestAGenesisIsValidOnceEveryOperatorHasSigned(t *testing.T) {
	g := founding(t, 3, 0, 1, 2, 0)
	hash := g.Hash()
	for i, missing := range []string{"op0,op1,op2", "op1,op2", "op2"} {
		if got := strings.Join(g.Unsigned(), ","); got != missing {
			t.Fatalf("unsigned: %s, want %s", got, missing)
		}
		if got := code(g.Check()); got != CodeGenesisUnsigned {
			t.Fatalf("checked with %s missing: %s", missing, got)
		}
		if err := g.SignBy(keyOf(t, g.Operators[i].ID)); err != nil {
			t.Fatal(err)
		}
		again, err := ParseGenesis(g.Encode())
		if err != nil {
			t.Fatal(err)
		}
		g = again
	}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
	if g.Hash() != hash {
		t.Fatal("signatures changed the hash")
	}
	if at, err := g.Created(); err != nil || at != 1793696400000 {
		t.Fatalf("created at %d, %v", at, err)
	}
}

func TestTheHashOfAGenesisNeverChanges(t *testing.T) {
	const want = "c41115a9096b38af040d31a5983057d35e1ba2482c39edb5055bf553f8af787b"
	if got := founding(t, 1, 0).Hash(); got != want {
		t.Fatalf("hash is %s, want %s: clusters founded earlier would lose their id", got, want)
	}
}

func TestAStrangerCannotSignAGenesis(t *testing.T) {
	g := founding(t, 1, 0)
	if got := code(g.SignBy(keyOf(t, "stranger"))); got != machine.CodeNotAuthorized {
		t.Fatal(got)
	}
}

func TestASignatureCoversEveryMemberOfTheGenesis(t *testing.T) {
	for name, change := range map[string]func(*Genesis){
		"name":     func(g *Genesis) { g.Name = "other" },
		"created":  func(g *Genesis) { g.CreatedAt = "2026-11-03T09:00:00.001Z" },
		"nonce":    func(g *Genesis) { g.Nonce = strings.Repeat("B", 22) },
		"operator": func(g *Genesis) { g.Operators[0].Name = "somebody" },
		"voter":    func(g *Genesis) { g.Voters[0].Operator = "op1" },
		"address":  func(g *Genesis) { g.Voters[0].Addrs = nil },
		"order":    func(g *Genesis) { g.Voters[0], g.Voters[1] = g.Voters[1], g.Voters[0] },
		"params":   func(g *Genesis) { g.Params.MaxPrincipalsPerOperator = 9 },
	} {
		g := signed(t, founding(t, 2, 0, 1))
		hash := g.Hash()
		change(&g)
		if got := code(g.Check()); got != machine.CodeBadSignature || g.Hash() == hash {
			t.Errorf("%s changed after signing: %s, hash changed %v", name, got, g.Hash() != hash)
		}
	}
	g := signed(t, founding(t, 2, 0, 1))
	g.Signatures["op0"] = g.Signatures["op1"]
	if got := code(g.Check()); got != machine.CodeBadSignature {
		t.Errorf("another operator's signature: %s", got)
	}
}

func TestAContradictoryGenesisIsRefused(t *testing.T) {
	small := "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" // the identity
	for name, change := range map[string]func(*Genesis){
		"version":                   func(g *Genesis) { g.V = 2 },
		"no name":                   func(g *Genesis) { g.Name = "" },
		"name with a line break":    func(g *Genesis) { g.Name = "a\nb" },
		"time without milliseconds": func(g *Genesis) { g.CreatedAt = "2026-11-03T09:00:00Z" },
		"time with comma":           func(g *Genesis) { g.CreatedAt = "2026-11-03T09:00:00,000Z" },
		"time before 1970":          func(g *Genesis) { g.CreatedAt = "1969-12-31T23:59:59.999Z" },
		"time that is none":         func(g *Genesis) { g.CreatedAt = "2026-02-30T09:00:00.000Z" },
		"short nonce":               func(g *Genesis) { g.Nonce = "AAAA" },
		"no operator":               func(g *Genesis) { g.Operators = nil },
		"no voter":                  func(g *Genesis) { g.Voters = nil },
		"operator twice":            func(g *Genesis) { g.Operators[1].ID = "op0" },
		"operator key twice":        func(g *Genesis) { g.Operators[1].JWK = g.Operators[0].JWK },
		"operator id of a node":     func(g *Genesis) { g.Operators[1].ID = g.Voters[1].Node },
		"operator id with space":    func(g *Genesis) { g.Operators[1].ID = "op 1" },
		"small-order operator key":  func(g *Genesis) { g.Operators[1].JWK.X = small },
		"another kid":               func(g *Genesis) { g.Operators[1].JWK.KID = g.Operators[0].JWK.KID },
		"node twice":                func(g *Genesis) { g.Voters[1].Node = g.Voters[0].Node },
		"node id that is none":      func(g *Genesis) { g.Voters[1].Node = "12D3KooW" },
		"unknown operator":          func(g *Genesis) { g.Voters[1].Operator = "op9" },
		"pbft key twice":            func(g *Genesis) { g.Voters[1].PBFTKey = g.Voters[0].PBFTKey },
		"one key for two purposes":  func(g *Genesis) { g.Voters[1].AttestKey = g.Voters[1].PBFTKey },
		"pbft key is an operator's": func(g *Genesis) { g.Voters[1].PBFTKey = g.Operators[0].JWK.X },
		"pbft key is an identity":   func(g *Genesis) { g.Voters[1].PBFTKey = keyOf(t, "node0").Public().X() },
		"small-order pbft key":      func(g *Genesis) { g.Voters[1].PBFTKey = small },
		"non-canonical base64":      func(g *Genesis) { g.Voters[1].PBFTKey = g.Voters[1].PBFTKey[:42] + "_" },
		"address that is none":      func(g *Genesis) { g.Voters[1].Addrs = []string{"10.0.0.1:80"} },
		"address twice":             func(g *Genesis) { g.Voters[1].Addrs = []string{"/ip4/1.1.1.1", "/ip4/1.1.1.1"} },
		"too many addresses":        func(g *Genesis) { g.Voters[1].Addrs = make([]string, MaxAddrs+1) },
		"window":                    func(g *Genesis) { g.Params.IDWindowMS = 999 },
		"future":                    func(g *Genesis) { g.Params.IDFutureMS = -1 },
		"electorate":                func(g *Genesis) { g.Params.MaxPrincipalsPerOperator = -1 },
		"dump":                      func(g *Genesis) { g.Params.DumpEvery = 0 },
		"signature of a stranger":   func(g *Genesis) { g.Signatures["op9"] = g.Signatures["op0"] },
	} {
		g := signed(t, founding(t, 2, 0, 1))
		change(&g)
		if got := code(g.Check()); got != CodeBadGenesis {
			t.Errorf("%s: %s", name, got)
		}
		if _, err := ParseGenesis(g.Encode()); code(err) != CodeBadGenesis {
			t.Errorf("%s, parsed: %v", name, err)
		}
	}
}

func TestAGenesisHasOneSpelling(t *testing.T) {
	text := string(signed(t, founding(t, 1, 0)).Encode())
	for name, pair := range map[string][2]string{
		"unknown member":       {`"v":1`, `"v":1,"w":1`},
		"null":                 {`"name":"test"`, `"name":null`},
		"missing member":       {`"id_future_ms":120000,`, ``},
		"empty optional":       {`"id":"op0",`, `"id":"op0","name":"",`},
		"other case":           {`"nonce"`, `"Nonce"`},
		"duplicate":            {`"v":1`, `"v":1,"v":1`},
		"number as text":       {`"v":1`, `"v":"1"`},
		"fraction":             {`"dump_every":1024`, `"dump_every":1024.5`},
		"signatures are gone":  {`"signatures":{`, `"signature":{`},
		"two documents":        {`"v":1}`, `"v":1}`},
		"empty list of addrs":  {`"addrs":["/ip4/10.0.0.1/tcp/7701"]`, `"addrs":[]`},
		"addrs that are null":  {`"addrs":["/ip4/10.0.0.1/tcp/7701"]`, `"addrs":null`},
		"key with extra value": {`"crv":"Ed25519"`, `"crv":"Ed25519","use":"sig"`},
	} {
		changed := strings.Replace(text, pair[0], pair[1], 1)
		if name == "two documents" {
			changed = text + text
		}
		if changed == text {
			t.Fatalf("%s: nothing to change", name)
		}
		if _, err := ParseGenesis([]byte(changed)); code(err) != CodeBadGenesis {
			t.Errorf("%s: %v", name, err)
		}
	}
	// White space and the order of members are free: the canonical form counts.
	if g, err := ParseGenesis([]byte(" " + strings.Replace(text, `"v":1`, "\n\"v\": 1", 1))); err != nil || string(g.Encode()) != text {
		t.Errorf("spaced out: %v", err)
	}
}

func TestInitWantsACheckedGenesis(t *testing.T) {
	tx := machinetest.Mem{}
	if got := code(Init(tx, founding(t, 1, 0))); got != CodeGenesisUnsigned || len(tx) > 0 {
		t.Fatalf("%s, %d keys written", got, len(tx))
	}
	g := signed(t, founding(t, 2, 0, 1))
	if err := Init(tx, g); err != nil {
		t.Fatal(err)
	}
	kept, err := Founding(tx)
	if err != nil || string(kept.Encode()) != string(g.Encode()) {
		t.Fatalf("the genesis kept is another: %v", err)
	}
	p, err := Params(tx)
	if err != nil || p != DefaultParameters() {
		t.Fatalf("params %+v, %v", p, err)
	}
	if v, err := FSMVersion(tx); err != nil || v != 1 {
		t.Fatalf("fsm version %d, %v", v, err)
	}
}

func FuzzParseGenesis(f *testing.F) {
	f.Add(signed(f, founding(f, 2, 0, 1)).Encode())
	f.Add(founding(f, 1, 0).Encode())
	f.Add([]byte(`{"v":1,"signatures":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		g, err := ParseGenesis(raw)
		if err != nil {
			if code(err) != CodeBadGenesis {
				t.Fatalf("refused as %v", err)
			}
			return
		}
		text, err := canon.Canonicalize(raw)
		if err != nil || string(text) != string(g.Encode()) {
			t.Fatalf("%s was read as %s", raw, g.Encode())
		}
	})
}
