package pbft

import (
	_ "embed"
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

// Certificate proves that a quorum committed a digest for an instance. Anybody
// who knows the committee of the instance's epoch can check it offline.
type Certificate struct {
	Instance Instance `json:"instance"`
	View     uint64   `json:"view"`
	Digest   Digest   `json:"digest"`
	Votes    []Proof  `json:"votes"` // of Commit votes, by ascending signer, exactly q
}

// CertificateSchema is the JSON Schema (2020-12) of a certificate.
//
//go:embed schema/certificate.json
var CertificateSchema json.RawMessage

// Signers are the indices of the members that signed, ascending.
func (c *Certificate) Signers() []int {
	out := make([]int, len(c.Votes))
	for i, p := range c.Votes {
		out[i] = p.Signer
	}
	return out
}

// verify checks a certificate against the instance's committee.
func (c *Certificate) verify(committee *Committee, instance Instance) error {
	if err := instance.Check(); err != nil {
		return err
	}
	if c.Instance != instance {
		code := CodeOtherInstance
		if c.Instance.Domain() != instance.Domain() {
			code = CodeOtherDomain
		}
		return machine.Refuse(code, "", "the certificate is of instance %+v, expected %+v", c.Instance, instance)
	}
	if instance.Epoch != committee.epoch {
		return machine.Refuse(CodeOtherDomain, "", "the instance is of epoch %d, the committee of %d", instance.Epoch, committee.epoch)
	}
	if c.Digest.IsZero() || c.View > MaxView {
		return machine.Refuse(CodeMalformed, "", "no digest, or a view above %d", uint64(MaxView))
	}
	key := instance.Key()
	return verifyQuorum(committee, instance.Domain(), c.Votes, func(int) Vote {
		return Vote{Key: key, View: c.View, Phase: Commit, Digest: c.Digest}
	})
}

// VerifyCertificate checks that cert proves the decision of digest for the
// instance by a quorum of distinct members of committee, the voters of the
// instance's epoch. It refuses with a stable code: malformed, bad_committee,
// other_domain, other_instance, wrong_digest, bad_certificate, not_a_member, bad_signature.
func VerifyCertificate(committee machine.Committee, instance Instance, digest [32]byte, cert Certificate) error {
	c, err := NewCommittee(committee)
	if err != nil {
		return err
	}
	return c.VerifyCertificate(instance, digest, cert)
}

// VerifyCertificate is the function of that name with a prepared committee.
func (c *Committee) VerifyCertificate(instance Instance, digest [32]byte, cert Certificate) error {
	if err := cert.verify(c, instance); err != nil {
		return err
	}
	if cert.Digest != digest {
		return machine.Refuse(CodeWrongDigest, "", "the certificate decides %s, expected %s", cert.Digest, Digest(digest))
	}
	return nil
}

// VerifiedCertificate is a certificate that has been checked; only
// [Committee.CheckCertificate] makes one.
type VerifiedCertificate struct{ cert *Certificate }

// CheckCertificate checks a certificate of the instance, whatever it decides.
func (c *Committee) CheckCertificate(instance Instance, cert *Certificate) (VerifiedCertificate, error) {
	if err := cert.verify(c, instance); err != nil {
		return VerifiedCertificate{}, err
	}
	return VerifiedCertificate{cert}, nil
}
