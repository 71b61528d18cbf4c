package membership

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

var (
	principalPattern = regexp.MustCompile(`^[A-Za-z0-9._:@/-]{1,128}$`)
	noncePattern     = regexp.MustCompile(`^[A-Za-z0-9_-]{22,86}$`)
	xPattern         = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	jwsPattern       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,512}\.\.[A-Za-z0-9_-]{86}$`)
	nodePattern      = regexp.MustCompile(`^12D3KooW[1-9A-HJ-NP-Za-km-z]{44}$`)
	addrPattern      = regexp.MustCompile(`^/[\x21-\x7e]{1,255}$`)
	hashPattern      = regexp.MustCompile(`^[0-9a-f]{64}$`)
	changePattern    = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
)

func badGenesis(format string, args ...any) *machine.Refusal {
	return machine.Refuse(CodeBadGenesis, "correct it and have every operator sign again", format, args...)
}

// Check is [Genesis.Validate], and every founding operator has signed, nobody
// else, and the signatures verify. Errors are refusals: bad_genesis,
// genesis_unsigned, bad_signature.
func (g Genesis) Check() error {
	if err := g.Validate(); err != nil {
		return err
	}
	if missing := g.Unsigned(); len(missing) > 0 {
		return machine.Refuse(CodeGenesisUnsigned, "have them run deliberd genesis sign", "not signed by %s", strings.Join(missing, ", ")).With("missing", missing)
	}
	payload := g.Payload()
	for _, o := range g.Operators {
		key, err := o.JWK.Public()
		if err != nil {
			return badGenesis("operator %s: %v", o.ID, err)
		}
		if err := key.VerifyDetached(sign.TypGenesis, payload, g.Signatures[o.ID]); err != nil {
			return machine.Refuse(machine.CodeBadSignature, "have the operator sign this very document", "signature of %s: %v", o.ID, err)
		}
	}
	return nil
}

// Validate judges everything but the signatures: shapes and ranges, distinct
// ids and keys, at least one operator and one voter, every voter's operator
// named. It errs with a refusal, code bad_genesis.
func (g Genesis) Validate() error {
	if wrong := g.headShape(); wrong != "" {
		return badGenesis("%s", wrong)
	}
	if wrong := g.Params.shape(); wrong != "" {
		return badGenesis("params: %s", wrong)
	}
	keys := keySet{}
	operators := map[string]bool{}
	for _, o := range g.Operators {
		if wrong := o.check(keys, operators); wrong != "" {
			return badGenesis("operator %q: %s", o.ID, wrong)
		}
		operators[o.ID] = true
	}
	for _, v := range g.Voters {
		if wrong := v.check(keys, operators); wrong != "" {
			return badGenesis("voter %q: %s", v.Node, wrong)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.Signatures)) {
		if !operators[id] {
			return badGenesis("signature of %q, who is no founding operator", id)
		}
	}
	return nil
}

const createdLayout = "2006-01-02T15:04:05.000Z"

func (g Genesis) headShape() string {
	created, err := time.Parse(createdLayout, g.CreatedAt)
	switch {
	case g.V != GenesisVersion:
		return "v is not 1, the version this build speaks"
	case !validText(g.Name, 128):
		return "name is empty, longer than 128 characters or holds a control character"
	case err != nil || created.Format(createdLayout) != g.CreatedAt || created.UnixMilli() < 0:
		return "created_at is not a time since 1970 written like 2026-11-03T09:00:00.000Z"
	case !noncePattern.MatchString(g.Nonce):
		return "nonce is not 22 to 86 base64url characters"
	case len(g.Operators) == 0 || len(g.Operators) > MaxOperators:
		return "there must be 1 to 64 operators"
	case len(g.Voters) == 0 || len(g.Voters) > MaxVoters:
		return "there must be 1 to 100 voters"
	}
	return ""
}

const day = 24 * 3_600_000 // milliseconds

func (p Parameters) shape() string {
	switch {
	case p.IDWindowMS < 1000 || p.IDWindowMS > 30*day:
		return "id_window_ms is not 1000 to 2592000000"
	case p.IDFutureMS < 0 || p.IDFutureMS > 3_600_000:
		return "id_future_ms is not 0 to 3600000"
	case p.MaxPrincipalsPerOperator < 0 || p.MaxPrincipalsPerOperator > 1_000_000:
		return "max_principals_per_operator is not 0 to 1000000"
	case p.DumpEvery < 1 || p.DumpEvery > 1_000_000_000:
		return "dump_every is not 1 to 1000000000"
	}
	return ""
}

// keySet remembers keys and refuses a second use, also of a key that the same
// private scalar serves: such a pair would unseat a whole committee.
type keySet map[string]bool

func (s keySet) add(k sign.PublicKey) bool {
	if s[k.Class()] {
		return false
	}
	s[k.Class()] = true
	return true
}

func (o Operator) check(keys keySet, operators map[string]bool) string {
	switch {
	case !principalPattern.MatchString(o.ID):
		return "id is not 1 to 128 characters of A-Z a-z 0-9 . _ : @ / -"
	case nodePattern.MatchString(o.ID):
		return "id is a node's"
	case operators[o.ID]:
		return "named twice"
	case o.Name != "" && !validText(o.Name, 128):
		return "name is longer than 128 characters or holds a control character"
	}
	key, err := o.JWK.Public()
	if err != nil {
		return "jwk: " + err.Error()
	}
	if !keys.add(key) {
		return "its key is another's"
	}
	return ""
}

func (v Voter) check(keys keySet, operators map[string]bool) string {
	identity, err := NodeKey(v.Node)
	if err != nil {
		return "node: " + err.Error()
	}
	pbft, err := sign.ParseX(v.PBFTKey)
	if err != nil {
		return "pbft_key: " + err.Error()
	}
	attest, err := sign.ParseX(v.AttestKey)
	if err != nil {
		return "attest_key: " + err.Error()
	}
	for _, k := range []sign.PublicKey{identity, pbft, attest} {
		if !keys.add(k) {
			return "key " + k.X() + " is used twice"
		}
	}
	if !operators[v.Operator] {
		return "its operator is not among the operators"
	}
	return addrsShape(v.Addrs)
}

func addrsShape(addrs []string) string {
	if len(addrs) > MaxAddrs {
		return "more than 16 addrs"
	}
	for i, a := range addrs {
		if !addrPattern.MatchString(a) {
			return "addrs holds something that is no multiaddr"
		}
		if slices.Contains(addrs[:i], a) {
			return "addrs holds an address twice"
		}
	}
	return ""
}

// validText reports whether s has 1 to most characters, none of them a control character.
func validText(s string, most int) bool {
	return s != "" && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
