package sign

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"
)

// smallOrderEncodings are all 14 encodings of points of small order: the eight
// canonical ones and the non-canonical spellings of those with small y.
var smallOrderEncodings = []string{
	"0100000000000000000000000000000000000000000000000000000000000000",
	"0100000000000000000000000000000000000000000000000000000000000080",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"0000000000000000000000000000000000000000000000000000000000000000",
	"0000000000000000000000000000000000000000000000000000000000000080",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
}

func bytesOf(t interface{ Fatal(...any) }, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// everyWay asks the single check, the expanded check and a batch, alone and
// among honest signatures, and demands one answer.
func everyWay(t *rapid.T, key [32]byte, message, sig []byte) bool {
	want := VerifyZIP215(key[:], message, sig)
	node, err := NewNodeKey(key)
	if err != nil {
		return want
	}
	if got := node.Verify(message, sig); got != want {
		t.Fatalf("expanded check says %v, plain check %v", got, want)
	}
	honest := rapid.IntRange(0, 8).Draw(t, "honest signatures in the batch")
	items := []Signed{{node, message, sig}}
	for i := range honest {
		k := testKey(byte(i))
		items = append(items, Signed{mustNodeKey(t, k), message, ed25519.Sign(k, message)})
	}
	for i, ok := range VerifyAll(items) {
		if expected := i > 0 || want; ok != expected {
			t.Fatalf("batch of %d: signature %d is %v, expected %v", len(items), i, ok, expected)
		}
	}
	return want
}

func testKey(i byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, 31), i))
}

func mustNodeKey(t interface{ Fatal(...any) }, k ed25519.PrivateKey) NodeKey {
	node, err := NewNodeKey([32]byte(k.Public().(ed25519.PublicKey)))
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func TestAnySmallOrderPointsSignByZIP215WithZeroS(t *testing.T) {
	// R and A of small order, s = 0: accepted by ZIP-215 for every message,
	// and for that reason refused as keys of a committee.
	for _, a := range smallOrderEncodings {
		for _, r := range smallOrderEncodings {
			sig := append(bytesOf(t, r), make([]byte, 32)...)
			if !VerifyZIP215(bytesOf(t, a), []byte("Zcash"), sig) {
				t.Errorf("A=%s R=%s: refused, ZIP-215 accepts", a, r)
			}
		}
		if _, err := NewNodeKey([32]byte(bytesOf(t, a))); !errors.Is(err, ErrBadKey) {
			t.Errorf("a committee would take the small-order key %s", a)
		}
	}
}

// withTorsion makes a signature whose R, and perhaps whose key, carries a
// point of small order: cofactored rules accept, cofactorless ones refuse.
func withTorsion(seed byte, message []byte, inR, inA *edwards25519.Point) (key [32]byte, sig []byte) {
	digest := sha512.Sum512(append(make([]byte, 31), seed))
	a, _ := new(edwards25519.Scalar).SetBytesWithClamping(digest[:32])
	publicPoint := new(edwards25519.Point).ScalarBaseMult(a)
	publicPoint.Add(publicPoint, inA)
	copy(key[:], publicPoint.Bytes())
	nonce := sha512.Sum512(append(digest[32:], message...))
	r, _ := new(edwards25519.Scalar).SetUniformBytes(nonce[:])
	rPoint := new(edwards25519.Point).ScalarBaseMult(r)
	rPoint.Add(rPoint, inR)
	h := sha512.New()
	h.Write(rPoint.Bytes())
	h.Write(key[:])
	h.Write(message)
	k, _ := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
	s := new(edwards25519.Scalar).MultiplyAdd(k, a, r)
	return key, append(rPoint.Bytes(), s.Bytes()...)
}

func TestTorsionNeverSplitsSingleFromBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		point := func(label string) *edwards25519.Point {
			raw, _ := hex.DecodeString(rapid.SampledFrom(smallOrderEncodings).Draw(t, label))
			p, err := new(edwards25519.Point).SetBytes(raw)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		message := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "message")
		key, sig := withTorsion(rapid.Byte().Draw(t, "seed"), message, point("torsion of R"), point("torsion of A"))
		if !everyWay(t, key, message, sig) {
			t.Fatal("a signature with torsion is refused, ZIP-215 accepts it")
		}
		sig[rapid.IntRange(0, 63).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if everyWay(t, key, message, sig) {
			// Only a flip that keeps 8R the same may verify: the sign bit of a
			// point whose two signs differ by torsion. It cannot, for a random R.
			t.Fatal("a changed signature verifies")
		}
	})
}

func TestMisspeltPointsNeverSplitSingleFromBatch(t *testing.T) {
	// A signer may use nonce 0 and write any small-order point as R, also in
	// the spellings that RFC 8032 forbids.
	rapid.Check(t, func(t *rapid.T) {
		seed, message := rapid.Byte().Draw(t, "seed"), rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "message")
		r := bytesOf(t, rapid.SampledFrom(smallOrderEncodings).Draw(t, "R"))
		key := testKey(seed)
		digest := sha512.Sum512(key.Seed())
		a, _ := new(edwards25519.Scalar).SetBytesWithClamping(digest[:32])
		h := sha512.New()
		h.Write(r)
		h.Write(key.Public().(ed25519.PublicKey))
		h.Write(message)
		k, _ := new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
		sig := append(r, new(edwards25519.Scalar).Multiply(k, a).Bytes()...)
		if !everyWay(t, [32]byte(key.Public().(ed25519.PublicKey)), message, sig) {
			t.Fatal("refused, ZIP-215 accepts it")
		}
		sig[40] ^= 1
		if everyWay(t, [32]byte(key.Public().(ed25519.PublicKey)), message, sig) {
			t.Fatal("a changed signature verifies")
		}
	})
}

func TestZIP215RefusesALargeS(t *testing.T) {
	key := testKey(1)
	sig := ed25519.Sign(key, []byte("m"))
	order := bytesOf(t, order)
	carry := 0
	for i := range 32 {
		carry += int(sig[32+i]) + int(order[i])
		sig[32+i] = byte(carry)
		carry >>= 8
	}
	if mustNodeKey(t, key).Verify([]byte("m"), sig) {
		t.Fatal("s + L verifies: signatures would be malleable")
	}
}

func TestKeysThatDifferByTorsionAreOneClass(t *testing.T) {
	plain, _ := withTorsion(7, nil, edwards25519.NewIdentityPoint(), edwards25519.NewIdentityPoint())
	torsion, err := new(edwards25519.Point).SetBytes(bytesOf(t, smallOrderEncodings[6]))
	if err != nil {
		t.Fatal(err)
	}
	twisted, _ := withTorsion(7, nil, edwards25519.NewIdentityPoint(), torsion)
	a, errA := NewNodeKey(plain)
	b, errB := NewNodeKey(twisted)
	if errA != nil || errB != nil || plain == twisted {
		t.Fatal(errA, errB, "the keys should differ")
	}
	if a.Class() != b.Class() {
		t.Error("one private scalar serves both keys, but they count as two")
	}
	if other := mustNodeKey(t, testKey(8)); a.Class() == other.Class() {
		t.Error("two unrelated keys share a class")
	}
}

func TestVerifyAllNamesTheBadSignature(t *testing.T) {
	for size := range 12 {
		for bad := -1; bad < size; bad++ {
			items := make([]Signed, size)
			for i := range items {
				k := testKey(byte(i))
				m := []byte{byte(i)}
				items[i] = Signed{mustNodeKey(t, k), m, ed25519.Sign(k, m)}
			}
			if bad >= 0 {
				items[bad].Message = []byte("another")
			}
			for i, ok := range VerifyAll(items) {
				if ok != (i != bad) {
					t.Errorf("%d signatures, number %d bad: number %d reported %v", size, bad, i, ok)
				}
			}
		}
	}
	if got := VerifyAll(make([]Signed, 5)); got[0] || got[4] {
		t.Error("zero keys verify")
	}
}

func BenchmarkNodeKeyVerify(b *testing.B) {
	k := testKey(1)
	node, m := mustNodeKey(b, k), make([]byte, 150)
	sig := ed25519.Sign(k, m)
	for b.Loop() {
		if !node.Verify(m, sig) {
			b.Fatal("refused")
		}
	}
}

func BenchmarkVerifyAll64(b *testing.B) {
	items := make([]Signed, 64)
	for i := range items {
		k := testKey(byte(i % 4))
		m := []byte{byte(i)}
		items[i] = Signed{mustNodeKey(b, k), m, ed25519.Sign(k, m)}
	}
	for b.Loop() {
		if !VerifyAll(items)[63] {
			b.Fatal("refused")
		}
	}
}
