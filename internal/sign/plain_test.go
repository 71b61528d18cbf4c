package sign

import (
	"crypto/ed25519"
	"testing"

	"filippo.io/edwards25519"
	"pgregory.net/rapid"
)

func sameAsStandard(t interface{ Fatalf(string, ...any) }, key, message, sig []byte) bool {
	want := ed25519.Verify(key, message, sig)
	if got := verifyPlain(key, message, sig); got != want {
		t.Fatalf("key %x, message %x, signature %x: %v, crypto/ed25519 says %v", key, message, sig, got, want)
	}
	return want
}

// order is the order of the base point, little-endian.
const order = "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010"

func TestTheRuleOfPrincipalsIsThatOfTheStandardLibrary(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		point := func(label string) *edwards25519.Point {
			p, err := new(edwards25519.Point).SetBytes(bytesOf(t, rapid.SampledFrom(smallOrderEncodings).Draw(t, label)))
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		message := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "message")
		key, sig := withTorsion(rapid.Byte().Draw(t, "seed"), message, point("torsion of R"), point("torsion of A"))
		switch rapid.IntRange(0, 6).Draw(t, "tampering") {
		case 0:
			sig[rapid.IntRange(0, 63).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 1:
			key[rapid.IntRange(0, 31).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case 2: // s + L
			carry := 0
			for i, b := range bytesOf(t, order) {
				carry += int(sig[32+i]) + int(b)
				sig[32+i] = byte(carry)
				carry >>= 8
			}
		case 3: // R, A of small order, in any spelling, and s = 0
			copy(key[:], bytesOf(t, rapid.SampledFrom(smallOrderEncodings).Draw(t, "A")))
			sig = append(bytesOf(t, rapid.SampledFrom(smallOrderEncodings).Draw(t, "R")), make([]byte, 32)...)
		case 4:
			copy(sig, rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "R"))
		}
		if sameAsStandard(t, key[:], message, sig) {
			accepted++
		} else {
			refused++
		}
	})
	if accepted == 0 || refused == 0 {
		t.Fatalf("%d accepted, %d refused: nothing is shown", accepted, refused)
	}
}

func TestSmallOrderPointsAreJudgedAsTheStandardLibraryDoes(t *testing.T) {
	accepted := 0
	for _, a := range smallOrderEncodings {
		for _, r := range smallOrderEncodings {
			for m := range byte(8) {
				if sameAsStandard(t, bytesOf(t, a), []byte{m}, append(bytesOf(t, r), make([]byte, 32)...)) {
					accepted++
				}
			}
		}
	}
	if accepted == 0 {
		t.Fatal("none verifies: nothing is shown")
	}
	if verifyPlain(nil, nil, nil) || verifyPlain(make([]byte, 32), nil, make([]byte, 63)) {
		t.Error("no key or no signature verifies")
	}
}

func FuzzPlain(f *testing.F) {
	k := testKey(1)
	f.Add([]byte(k.Public().(ed25519.PublicKey)), []byte("m"), ed25519.Sign(k, []byte("m")))
	f.Fuzz(func(t *testing.T, key, message, sig []byte) {
		if len(key) == ed25519.PublicKeySize {
			sameAsStandard(t, key, message, sig)
		}
	})
}

func BenchmarkPlain(b *testing.B) {
	k, m := testKey(1), make([]byte, 900)
	key, sig := k.Public().(ed25519.PublicKey), ed25519.Sign(k, m)
	for b.Loop() {
		if !verifyPlain(key, m, sig) {
			b.Fatal("refused")
		}
	}
}
