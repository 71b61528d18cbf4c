package membership

import (
	"encoding/hex"
	"sort"
	"time"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// GenesisVersion is the genesis format spoken by this build.
const GenesisVersion = 1

// Genesis is the founding document of a cluster. Every member without
// omitempty must be written, so that one document has one hash.
type Genesis struct {
	V          int               `json:"v"`          // GenesisVersion
	Name       string            `json:"name"`       // for people, 1 to 128 characters
	CreatedAt  string            `json:"created_at"` // RFC 3339 in UTC with milliseconds: 2026-11-03T09:00:00.000Z
	Nonce      string            `json:"nonce"`      // 22 to 86 base64url characters, random: tells clusters of equal content apart
	Operators  []Operator        `json:"operators"`  // 1 to MaxOperators
	Voters     []Voter           `json:"voters"`     // 1 to MaxVoters
	Params     Parameters        `json:"params"`
	Signatures map[string]string `json:"signatures"` // operator id: detached JWS, typ sign.TypGenesis, over everything else
}

// Operator is a founding operator.
type Operator struct {
	ID   string   `json:"id"`
	Name string   `json:"name,omitempty"`
	JWK  sign.JWK `json:"jwk"`
}

// Voter is a voting node and its keys. Keys are 32-byte Ed25519 public keys
// in unpadded base64url, distinct from each other and from the identity key.
type Voter struct {
	Node      string   `json:"node"`            // libp2p peer id: embeds the identity key
	Operator  string   `json:"operator"`        // who answers for it
	PBFTKey   string   `json:"pbft_key"`        // signs its PBFT frames
	AttestKey string   `json:"attest_key"`      // signs its attestations
	Addrs     []string `json:"addrs,omitempty"` // multiaddrs without /p2p, at most MaxAddrs
}

// Parameters are fixed by the genesis.
type Parameters struct {
	IDWindowMS               int64 `json:"id_window_ms"`                // an action's ULID may be this much older than replicated time; 1,000 to 30 days
	IDFutureMS               int64 `json:"id_future_ms"`                // … and this much ahead; 0 to 1 hour
	MaxPrincipalsPerOperator int   `json:"max_principals_per_operator"` // active agents and humans; 0: no limit
	DumpEvery                int64 `json:"dump_every"`                  // entries between hashes of a canonical dump of the state; at least 1
}

// Bounds of a cluster.
const (
	MaxOperators = 64
	MaxVoters    = 100
	MaxAddrs     = 16
)

// DefaultParameters are what a genesis states unless its author says otherwise.
func DefaultParameters() Parameters {
	return Parameters{IDWindowMS: 3_600_000, IDFutureMS: 120_000, DumpEvery: 1024}
}

// ParseGenesis reads a genesis strictly and validates it ([Genesis.Validate]).
// It does not ask for signatures: see [Genesis.Check]. Errors are refusals.
func ParseGenesis(raw []byte) (Genesis, error) {
	var g Genesis
	if err := canon.DecodeExact(raw, &g); err != nil {
		return Genesis{}, machine.Refuse(CodeBadGenesis, "make one with deliberd genesis new", "not a genesis: %v", err)
	}
	return g, g.Validate()
}

// Encode is the genesis with its signatures in canonical JSON.
func (g Genesis) Encode() []byte {
	if g.Signatures == nil {
		g.Signatures = map[string]string{}
	}
	return canon.MustMarshal(g)
}

// Payload is what the founding operators sign and [Genesis.Hash] hashes: the
// canonical JSON of everything but the signatures.
func (g Genesis) Payload() []byte {
	return canon.MustMarshal(struct {
		V         int        `json:"v"`
		Name      string     `json:"name"`
		CreatedAt string     `json:"created_at"`
		Nonce     string     `json:"nonce"`
		Operators []Operator `json:"operators"`
		Voters    []Voter    `json:"voters"`
		Params    Parameters `json:"params"`
	}{g.V, g.Name, g.CreatedAt, g.Nonce, g.Operators, g.Voters, g.Params})
}

// Hash is the cluster's id: the hex SHA-256 of [Genesis.Payload].
func (g Genesis) Hash() string {
	sum := canon.Hash(g.Payload())
	return hex.EncodeToString(sum[:])
}

// Created is the stamp that CreatedAt names: replicated time starts there.
func (g Genesis) Created() (machine.Stamp, error) {
	at, err := time.Parse(createdLayout, g.CreatedAt)
	if err != nil {
		return 0, badGenesis("created_at is not written like 2026-11-03T09:00:00.000Z")
	}
	return machine.Stamp(at.UnixMilli()), nil
}

// SignBy adds the signature of the operator who holds key. It errs with
// not_authorized when no founding operator does.
func (g *Genesis) SignBy(key sign.Key) error {
	for _, o := range g.Operators {
		public, err := o.JWK.Public()
		if err != nil || public.KID() != key.KID() {
			continue
		}
		jws, err := key.Detached(sign.TypGenesis, g.Payload())
		if err != nil {
			return err
		}
		signatures := map[string]string{o.ID: jws}
		for id, other := range g.Signatures { // order: into a map again
			if id != o.ID {
				signatures[id] = other
			}
		}
		g.Signatures = signatures
		return nil
	}
	return machine.Refuse(machine.CodeNotAuthorized, "sign with the key that the genesis names", "no founding operator holds key %s", key.KID())
}

// Unsigned lists the operators whose signature is still missing, ascending.
func (g Genesis) Unsigned() []string {
	var out []string
	for _, o := range g.Operators {
		if g.Signatures[o.ID] == "" {
			out = append(out, o.ID)
		}
	}
	sort.Strings(out)
	return out
}
