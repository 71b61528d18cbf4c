package main

// lateness leaves late replicas behind, or lets them take a false certificate.
var lateness = []Mutant{
	{
		Name: "decided-does-not-answer", Breaks: "A decided replica does not answer those who still vote.",
		Edits: []Edit{{engineGo, `	if e.cert != nil {
		e.answer(v.frame.signer)
	}
`, ``}},
	},
	{
		Name: "decided-does-not-listen", Breaks: "A decided replica drops unverified what those who still vote send, and so does not answer.",
		Edits: []Edit{{engineGo, `	if e.cert != nil && e.mayAnswer(f.signer) {
		return true
	}
`, ``}},
	},
	{
		Name: "decided-clock-stands", Breaks: "A decided replica's clock stands still, so the time to answer never comes.",
		Edits: []Edit{{viewsGo, `	e.now++
	if e.cert != nil || e.self == Observer {
		return
	}
`, `	if e.cert != nil || e.self == Observer {
		return
	}
	e.now++
`}},
	},
	{
		Name: "answers-once", Breaks: "A decided replica answers each member once, even if the answer is lost.",
		Edits: []Edit{{engineGo, `		e.answered[member] = e.now
		e.ready.Answers`, `		e.answered[member] = e.now + 1<<62
		e.ready.Answers`},
			{engineGo, `	return e.now-e.answered[member] >= uint64(e.cfg.Resend)`, `	return e.now >= e.answered[member]+uint64(e.cfg.Resend)`}},
	},
	{
		Name: "answers-every-time", Breaks: "A decided replica answers every vote, however many come.",
		Edits: []Edit{{engineGo, `	return e.now-e.answered[member] >= uint64(e.cfg.Resend)`, `	return true`}},
	},
	{
		Name: "received-certificate-unchecked", Breaks: "A certificate that a peer sends is not verified.",
		Edits: []Edit{{certificateGo, `	if err := cert.verify(c, instance); err != nil {
		return VerifiedCertificate{}, err
	}
`, ``}},
	},
	{
		Name: "certificate-of-another-instance", Breaks: "A certificate is verified for the instance it names, not for the one it is meant for.",
		Edits: []Edit{
			{certificateGo, `	if c.Instance != instance {
		code`, `	if c.Instance.Domain() != instance.Domain() {
		code`},
			{certificateGo, `	key := instance.Key()`, `	key := c.Instance.Key()`},
			{engineGo, `	if v.cert == nil || v.cert.Instance != e.instance {`, `	if v.cert == nil {`},
		},
	},
	{
		Name: "certificate-of-another-digest", Breaks: "The offline verifier does not compare the digest with the one that is asked about.",
		Edits: []Edit{{certificateGo, `	if cert.Digest != digest {`, `	if cert.Digest.IsZero() {`}},
	},
}
