package sign

import (
	"crypto/ed25519"

	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// plain is the one rule of principals' signatures: cofactorless, as
// crypto/ed25519 has it. This implementation gives the same answers, also on
// crafted signatures, in about half the time.
var plain = &voi.Options{Verify: voi.VerifyOptionsStdLib}

func verifyPlain(key, message, sig []byte) bool {
	return len(key) == ed25519.PublicKeySize && len(sig) == ed25519.SignatureSize && voi.VerifyWithOptions(key, message, sig, plain)
}
