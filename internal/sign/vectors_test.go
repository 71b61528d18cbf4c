package sign_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/vectors"
)

// TestVectorsEnvelope runs the signature cases of the Coalition Protocol's
// envelopes. The kinds that judge a log or a wire text are run by the tests of
// package coalition.
func TestVectorsEnvelope(t *testing.T) {
	keys := readKeys(t)
	elsewhere := func(t *testing.T, _ json.RawMessage) { t.Skip("run by the tests of package coalition") }
	vectors.Run(t, "envelope", map[string]func(*testing.T, json.RawMessage){
		"thumbprint":  thumbprintCase,
		"genesis":     genesisCase,
		"envelope":    keys.envelopeCase,
		"consent":     keys.consentCase,
		"owner_proof": keys.ownerProofCase,
		"log":         elsewhere,
		"replay":      elsewhere,
		"wire":        elsewhere,
		"duplicate":   elsewhere,
	})
}

func thumbprintCase(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		JWK                   map[string]string
		Canonical, Thumbprint string
	}](t, raw)
	sum := sha256.Sum256([]byte(v.Canonical))
	if got := sign.Thumbprint(v.JWK["x"]); got != v.Thumbprint || got != base64.RawURLEncoding.EncodeToString(sum[:]) {
		t.Fatalf("got %s, want %s", got, v.Thumbprint)
	}
	// A JWK of exactly our members is read, and only with its own thumbprint as kid.
	key, err := sign.ParseJWK(canon.MustMarshal(v.JWK))
	kid, named := v.JWK["kid"]
	switch strict := len(v.JWK) == 3 || len(v.JWK) == 4 && named; {
	case strict && (!named || kid == v.Thumbprint):
		if err != nil || key.KID() != v.Thumbprint {
			t.Fatalf("read as %s, %v", key.KID(), err)
		}
	case err == nil:
		t.Fatal("read in spite of another member or kid")
	}
}

func genesisCase(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Object    json.RawMessage
		JCS, Hash string
	}](t, raw)
	text, err := canon.Canonicalize(v.Object)
	if err != nil || string(text) != v.JCS || hexSum(text) != v.Hash {
		t.Fatalf("got %s with hash %s, %v", text, hexSum(text), err)
	}
}

func (k keyring) envelopeCase(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Key, Protected, Sig string
		Envelope            map[string]json.RawMessage
		SigningJCS          string `json:"signing_jcs"`
		SigningSHA256       string `json:"signing_sha256"`
		SubmissionDigest    string `json:"submission_digest"`
		EntryJCSSHA256      string `json:"entry_jcs_sha256"`
	}](t, raw)
	payload := without(v.Envelope, "sig", "seq", "ts", "prev_hash")
	if string(payload) != v.SigningJCS || hexSum(payload) != v.SigningSHA256 {
		t.Fatalf("signing text %s", payload)
	}
	if got := hexSum(without(v.Envelope, "seq", "ts", "prev_hash")); got != v.SubmissionDigest {
		t.Errorf("submission digest %s, want %s", got, v.SubmissionDigest)
	}
	if got := hexSum(without(v.Envelope)); v.EntryJCSSHA256 != "" && got != v.EntryJCSSHA256 {
		t.Errorf("entry hash %s, want %s", got, v.EntryJCSSHA256)
	}
	var inside string
	if err := json.Unmarshal(v.Envelope["sig"], &inside); err != nil || inside != v.Sig {
		t.Fatalf("the envelope carries another sig: %v", err)
	}
	key := k.public(t, v.Key)
	if err := key.VerifyDetached(sign.TypJOSE, payload, v.Sig); err != nil {
		t.Fatal(err)
	}
	if kid, err := sign.HeaderKID(v.Sig); err != nil || kid != key.KID() {
		t.Errorf("the header names %s, %v", kid, err)
	}
	head, _, _ := strings.Cut(v.Sig, ".")
	if text, err := base64.RawURLEncoding.DecodeString(head); err != nil || string(text) != v.Protected {
		t.Errorf("header %s, want %s (%v)", text, v.Protected, err)
	}
	// Ed25519 is deterministic: with the seed we make the same bytes.
	if private, ok := k.private[v.Key]; ok {
		if got, err := private.Detached(sign.TypJOSE, payload); err != nil || got != v.Sig {
			t.Errorf("we would sign %s, %v", got, err)
		}
	}
	if err := key.VerifyDetached(sign.TypJOSE, append(payload, ' '), v.Sig); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("another text verifies: %v", err)
	}
}

func (k keyring) consentCase(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		PinnedOwner    string `json:"pinned_owner"`
		Payload        json.RawMessage
		PayloadJCS     string `json:"payload_jcs"`
		ConsentSig     string `json:"consent_sig"`
		Expect, Reason string
	}](t, raw)
	payload, err := canon.Canonicalize(v.Payload)
	if err != nil || string(payload) != v.PayloadJCS {
		t.Fatalf("payload %s, %v", payload, err)
	}
	judge(t, reasonOf(k.public(t, v.PinnedOwner).VerifyDetached(sign.TypJOSE, payload, v.ConsentSig)), v.Expect, v.Reason)
}

func (k keyring) ownerProofCase(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Participant string
		AgentKey    string `json:"agent_key"`
		Payload     struct {
			OwnerKey json.RawMessage `json:"owner_key"`
		}
		PayloadJCS string                                     `json:"payload_jcs"`
		OwnerProof string                                     `json:"owner_proof"`
		Pinned     []struct{ Participant, Thumbprint string } `json:"already_pinned"`
		Expect     string
		Reason     string
	}](t, raw)
	full := vectors.As[struct{ Payload json.RawMessage }](t, raw)
	payload, err := canon.Canonicalize(full.Payload)
	if err != nil || string(payload) != v.PayloadJCS {
		t.Fatalf("payload %s, %v", payload, err)
	}
	reason := ownerProof(v.Payload.OwnerKey, k.public(t, v.AgentKey), payload, v.OwnerProof, func(thumbprint string) bool {
		for _, p := range v.Pinned {
			if p.Thumbprint == thumbprint && p.Participant != v.Participant {
				return true
			}
		}
		return false
	})
	judge(t, reason, v.Expect, v.Reason)
}

// ownerProof judges a join's owner key and proof in the order of the
// protocol's check list: schema, signature, authorization. It returns the
// code of the first failure, "" when all is well.
func ownerProof(jwk json.RawMessage, agent sign.PublicKey, payload []byte, proof string, pinned func(thumbprint string) bool) string {
	owner, err := sign.ParseJWK(jwk)
	var members map[string]json.RawMessage
	if errors.Is(err, sign.ErrJWKShape) || json.Unmarshal(jwk, &members) != nil || members["kid"] == nil {
		return "schema_invalid"
	}
	if err != nil || owner.KID() == agent.KID() {
		return "bad_signature"
	}
	if err := owner.VerifyDetached(sign.TypJOSE, payload, proof); err != nil {
		return reasonOf(err)
	}
	if pinned(owner.KID()) {
		return "not_authorized"
	}
	return ""
}

func reasonOf(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, sign.ErrBadSignature):
		return "bad_signature"
	}
	return err.Error()
}

func judge(t *testing.T, got, expect, reason string) {
	t.Helper()
	switch expect {
	case "verify":
		if got != "" {
			t.Fatalf("rejected as %s", got)
		}
	case "reject":
		if got != reason {
			t.Fatalf("got %q, want %q", got, reason)
		}
	default:
		t.Fatalf("expect is %q", expect)
	}
}

// without is the canonical form of an object less some members.
func without(object map[string]json.RawMessage, members ...string) []byte {
	rest := map[string]json.RawMessage{}
	for name, value := range object {
		rest[name] = value
	}
	for _, name := range members {
		delete(rest, name)
	}
	return canon.MustMarshal(rest)
}

func hexSum(text []byte) string {
	sum := canon.Hash(text)
	return hex.EncodeToString(sum[:])
}

// keyring is the keys that cases name.
type keyring struct {
	publics map[string]sign.PublicKey
	private map[string]sign.Key
}

// readKeys takes keys from the file's own list, from its thumbprint cases
// ("thumbprint-<key id>"), and last from the file that the module brings.
func readKeys(t *testing.T) keyring {
	k := keyring{map[string]sign.PublicKey{}, map[string]sign.Key{}}
	own, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "envelope.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{own, vectors.Load(t, "envelope")} {
		file := vectors.As[struct {
			Keys []struct {
				ID, Seed string
				JWK      json.RawMessage
			}
			Cases []struct {
				ID, Kind string
				JWK      json.RawMessage
			}
		}](t, raw)
		for _, c := range file.Cases {
			if id, ok := strings.CutPrefix(c.ID, "thumbprint-"); ok && c.Kind == "thumbprint" {
				if key, err := sign.ParseJWK(c.JWK); err == nil {
					k.publics[id] = key
				}
			}
		}
		for _, c := range file.Keys {
			key, err := sign.ParseJWK(c.JWK)
			if err != nil {
				t.Fatalf("key %s: %v", c.ID, err)
			}
			k.publics[c.ID] = key
			if c.Seed == "" {
				continue
			}
			seed, err := hex.DecodeString(c.Seed)
			if err != nil {
				t.Fatal(err)
			}
			if k.private[c.ID], err = sign.KeyFromSeed(seed); err != nil || k.private[c.ID].Public() != key {
				t.Fatalf("key %s: seed and jwk are not one key (%v)", c.ID, err)
			}
		}
	}
	return k
}

func (k keyring) public(t *testing.T, id string) sign.PublicKey {
	t.Helper()
	key, ok := k.publics[id]
	if !ok {
		t.Fatalf("the file does not say what key %q is", id)
	}
	return key
}
