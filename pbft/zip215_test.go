package pbft

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"testing"

	"filippo.io/edwards25519"

	"github.com/deliberd/deliberd/machine"
)

// Points of small order, and the identity in a spelling that is not canonical.
const (
	orderEight       = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
	orderTwo         = "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
	identity         = "0100000000000000000000000000000000000000000000000000000000000000"
	identityMisspelt = "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"
)

func rawPoint(s string) []byte {
	raw, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return raw
}

func pointOf(raw []byte) *edwards25519.Point {
	p, err := new(edwards25519.Point).SetBytes(raw)
	if err != nil {
		panic(err)
	}
	return p
}

// craft signs as the holder of a key can who does not follow RFC 8032: public
// may be the key plus a point of small order; R is nonce·B + torsion, or,
// when spelt is set, these very bytes of a small-order point and nonce 0.
func craft(key ed25519.PrivateKey, public [32]byte, message []byte, torsion, spelt string) (s Signature) {
	digest := sha512.Sum512(key.Seed())
	secret, _ := new(edwards25519.Scalar).SetBytesWithClamping(digest[:32])
	nonce, r := edwards25519.NewScalar(), rawPoint(spelt)
	if spelt == "" {
		wide := sha512.Sum512(append(digest[32:], message...))
		nonce, _ = nonce.SetUniformBytes(wide[:])
		point := new(edwards25519.Point).ScalarBaseMult(nonce)
		r = point.Add(point, pointOf(rawPoint(torsion))).Bytes()
	}
	h := sha512.New()
	h.Write(r)
	h.Write(public[:])
	h.Write(message)
	k, _ := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	copy(s[:], r)
	copy(s[32:], new(edwards25519.Scalar).MultiplyAdd(k, secret, nonce).Bytes())
	return s
}

// twisted is a key plus a point of small order.
func twisted(key ed25519.PrivateKey, torsion string) [32]byte {
	p := pointOf(key.Public().(ed25519.PublicKey))
	return [32]byte(p.Add(p, pointOf(rawPoint(torsion))).Bytes())
}

// oddities are signatures that verifiers of different rules disagree about:
// ZIP-215 accepts them all.
var oddities = []struct{ name, inKey, inR, spelt string }{
	{"as RFC 8032 makes them", identity, identity, ""},
	{"with torsion of order 8 in R", identity, orderEight, ""},
	{"with torsion of order 2 in R", identity, orderTwo, ""},
	{"with torsion of order 8 in the key", orderEight, identity, ""},
	{"with torsion in the key and in R", orderEight, orderTwo, ""},
	{"with the identity as R", identity, identity, identity},
	{"with the identity as R in a spelling that is not canonical", identity, identity, identityMisspelt},
	{"with a point of order 8 as R and torsion in the key", orderEight, identity, orderEight},
}

func TestEveryVerifierTakesTorsionAndOddEncodingsByZIP215(t *testing.T) {
	keys := testKeys(4)
	in := testInstance(testCommittee(keys, 1), "round")
	strict := 0 // how many of them the cofactorless rule refuses
	for _, odd := range oddities {
		members := testMembers(keys, 1)
		members.Members[1].Key = twisted(keys[1], odd.inKey)
		c, err := NewCommittee(members)
		if err != nil {
			t.Fatal(err)
		}
		for _, place := range verifiers(in, keys) {
			if place.name == "first vote of a guilt proof" || place.name == "second vote of a guilt proof" {
				place.check = guiltOf(in, keys[1], members.Members[1].Key, place.name)
			}
			hashes := []Digest{place.vote.Hash()}
			message := signedBytes(in.Domain(), 1, hashes)
			p := Proof{Signer: 1, Hashes: hashes, Signature: craft(keys[1], members.Members[1].Key, message, odd.inR, odd.spelt)}
			if !ed25519.Verify(members.Members[1].Key[:], message, p.Signature[:]) {
				strict++
			}
			if err := place.check(c, p); err != nil {
				t.Errorf("%s: a signature %s: %v", place.name, odd.name, err)
			}
			for _, at := range []int{0, 33} { // another R, another s
				bad := p
				bad.Signature[at] ^= 4
				if codeOf(place.check(c, bad)) != CodeBadSignature {
					t.Errorf("%s: a changed signature %s is accepted", place.name, odd.name)
				}
			}
			bad := p
			bad.Signature = plusOrder(p.Signature)
			if codeOf(place.check(c, bad)) != CodeBadSignature {
				t.Errorf("%s: a signature %s has a second s", place.name, odd.name)
			}
		}
	}
	if strict < len(verifiers(in, keys))*4 {
		t.Errorf("only %d of the signatures would tell another rule from ZIP-215", strict)
	}
}

// guiltOf is the check of a guilt proof whose other vote the odd key signs too.
func guiltOf(in Instance, key ed25519.PrivateKey, public [32]byte, which string) func(*Committee, Proof) error {
	d := in.Domain()
	mine := Vote{Key: in.Key(), Phase: Prepare, Digest: valueOf("A")}
	other := Vote{Key: in.Key(), Phase: Prepare, Digest: valueOf("B")}
	hashes := []Digest{other.Hash()}
	proof := Proof{Signer: 1, Hashes: hashes, Signature: craft(key, public, signedBytes(d, 1, hashes), orderEight, "")}
	return func(c *Committee, p Proof) error {
		if which == "first vote of a guilt proof" {
			return Guilt{Instance: in, A: mine, ProofA: p, B: other, ProofB: proof}.Verify(c)
		}
		return Guilt{Instance: in, A: other, ProofA: proof, B: mine, ProofB: p}.Verify(c)
	}
}

// plusOrder adds the group's order to s: the same s to whoever does not look.
func plusOrder(s Signature) Signature {
	order := rawPoint("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
	carry := 0
	for i := range order {
		carry += int(s[32+i]) + int(order[i])
		s[32+i] = byte(carry)
		carry >>= 8
	}
	return s
}

func TestCommitteesRefuseKeysThatOneScalarServes(t *testing.T) {
	keys := testKeys(4)
	good := testMembers(keys, 1)
	negative := [32]byte(new(edwards25519.Point).Negate(pointOf(good.Members[1].Key[:])).Bytes())
	// The points with y = 3 … 18 have a second spelling, y + p: find one of large order.
	canonical, misspelt := [32]byte{}, [32]byte{}
	for y := byte(3); y <= 18 && canonical == [32]byte{}; y++ {
		low, high := [32]byte{y}, [32]byte(rawPoint(identityMisspelt))
		high[0] += y - 1
		if _, err := NewCommittee(machine.Committee{Members: []machine.Member{{Node: "a", Key: low}}}); err == nil {
			canonical, misspelt = low, high
		}
	}
	if canonical == [32]byte{} {
		t.Fatal("no point with a small y")
	}
	for name, pair := range map[string][2][32]byte{
		"equal":                 {good.Members[1].Key, good.Members[1].Key},
		"torsion of order 2":    {good.Members[1].Key, twisted(keys[1], orderTwo)},
		"torsion of order 8":    {good.Members[1].Key, twisted(keys[1], orderEight)},
		"the other sign":        {good.Members[1].Key, negative},
		"another spelling":      {canonical, misspelt},
		"both twisted, unequal": {twisted(keys[1], orderTwo), twisted(keys[1], orderEight)},
	} {
		for i, alone := range pair {
			c := testMembers(keys, 1)
			c.Members[1].Key = alone
			if _, err := NewCommittee(c); err != nil {
				t.Errorf("%s: key %d is refused alone: %v", name, i, err)
			}
		}
		c := testMembers(keys, 1)
		c.Members[1].Key, c.Members[3].Key = pair[0], pair[1]
		if _, err := NewCommittee(c); codeOf(err) != CodeBadCommittee {
			t.Errorf("%s: two members share a scalar: %v", name, err)
		}
	}
}
