package main

// bindings leave something out of what a signature says, so that a vote can be
// moved to where it was not cast.
var bindings = []Mutant{
	{
		Name: "view-unbound", Breaks: "A vote's hash does not cover its view.",
		Edits: []Edit{{voteGo, `	return sha256.Sum256(v.appendHeader(b))`, `	v.View = 0
	return sha256.Sum256(v.appendHeader(b))`}},
	},
	{
		Name: "phase-unbound", Breaks: "A vote's hash does not cover its phase: a prepare serves as a commit.",
		Edits: []Edit{{voteGo, `	return sha256.Sum256(v.appendHeader(b))`, `	v.Phase = 0
	return sha256.Sum256(v.appendHeader(b))`}},
	},
	{
		Name: "digest-unbound", Breaks: "A vote's hash does not cover its digest.",
		Edits: []Edit{{voteGo, `	return sha256.Sum256(v.appendHeader(b))`, `	v.Digest = Digest{}
	return sha256.Sum256(v.appendHeader(b))`}},
	},
	{
		Name: "claim-unbound", Breaks: "A view change's hash does not cover what it claims.",
		Edits: []Edit{{voteGo, `	return sha256.Sum256(v.appendHeader(b))`, `	if v.Phase == ViewChange {
		v.Prepared, v.Digest = 0, Digest{}
	}
	return sha256.Sum256(v.appendHeader(b))`}},
	},
	{
		Name: "purpose-unbound", Breaks: "The instance's key does not cover its purpose: votes on another matter of the same name count.",
		Edits: []Edit{{instanceGo, `	b = appendInstance(b, i)
	return sha256.Sum256(b)`, `	i.Purpose = ""
	b = appendInstance(b, i)
	return sha256.Sum256(b)`}},
	},
	{
		Name: "instance-not-compared", Breaks: "A vote of another instance counts.",
		Edits: []Edit{
			{engineGo, `		if v.votes[i].Key == e.key {
			errs`, `		if v.frame.domain == e.domain {
			errs`},
			{engineGo, `	if v.votes[i].Key != e.key {
		return machine.Refuse(CodeOtherInstance, "", "the vote is of another instance")
	}
`, ``},
			{engineGo, `		if f.votes[i].Key == e.key && e.WantsVote(f, i) {`, `		if e.WantsVote(f, i) {`},
			{engineGo, `	if v.Key != e.key || f.domain != e.domain ||`, `	if f.domain != e.domain ||`},
		},
	},
	{
		Name: "domain-not-compared", Breaks: "A frame of another genesis or generation counts when its votes name the instance.",
		Edits: []Edit{
			{engineGo, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil || v.frame.domain != e.domain {`, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil {`},
			{engineGo, `	if v.Key != e.key || f.domain != e.domain ||`, `	if v.Key != e.key ||`},
		},
	},
	{
		Name: "epoch-unbound", Breaks: "Nothing binds a vote to its epoch: an old epoch's votes of the same keys count.",
		Edits: []Edit{
			{instanceGo, `	b = appendInstance(b, i)
	return sha256.Sum256(b)`, `	i.Epoch = 0
	b = appendInstance(b, i)
	return sha256.Sum256(b)`},
			{frameGo, `	b = appendDomain(b, d)
	b = appendName(b, "frame")`, `	d.Epoch = 0
	b = appendDomain(b, d)
	b = appendName(b, "frame")`},
			{frameGo, `		case f.domain.Epoch != c.epoch:
			errs[i] = machine.Refuse(CodeOtherDomain, "", "signed in epoch %d, the committee's is %d", f.domain.Epoch, c.epoch)
`, ``},
			{engineGo, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil || v.frame.domain != e.domain {`, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil {`},
			{engineGo, `	if v.Key != e.key || f.domain != e.domain ||`, `	if v.Key != e.key ||`},
		},
	},
	{
		Name: "generation-unbound", Breaks: "Nothing binds a vote to its generation: votes from before a reset count.",
		Edits: []Edit{
			{instanceGo, `	b = appendInstance(b, i)
	return sha256.Sum256(b)`, `	i.Generation = 0
	b = appendInstance(b, i)
	return sha256.Sum256(b)`},
			{frameGo, `	b = appendDomain(b, d)
	b = appendName(b, "frame")`, `	d.Generation = 0
	b = appendDomain(b, d)
	b = appendName(b, "frame")`},
			{engineGo, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil || v.frame.domain != e.domain {`, `func (e *Engine) StepVote(v Verified, i int) error {
	if v.frame == nil {`},
			{engineGo, `	if v.Key != e.key || f.domain != e.domain ||`, `	if v.Key != e.key ||`},
		},
	},
	{
		Name: "signer-unbound", Breaks: "The signed bytes do not name the signer's seat.",
		Edits: []Edit{{frameGo, `	b = binary.BigEndian.AppendUint16(b, uint16(signer))
`, ``}},
		Unseen: "the members' keys differ, and each key verifies its own seat only",
	},
	{
		Name: "genesis-not-signed", Breaks: "The signed bytes do not name the cluster.",
		Edits: []Edit{{frameGo, `	b = appendDomain(b, d)
	b = appendName(b, "frame")`, `	d.Genesis = ""
	b = appendDomain(b, d)
	b = appendName(b, "frame")`}},
		Unseen: "votes name it too, in the instance's key",
	},
	{
		Name: "proof-not-of-the-vote", Breaks: "A proof is not held against the vote that it should prove.",
		Edits: []Edit{{voteGo, `	if len(p.Hashes) > MaxVotes || !holds(p.Hashes, v.Hash()) {`, `	if len(p.Hashes) > MaxVotes {`}},
	},
	{
		Name: "proof-signature-unchecked", Breaks: "The signature of a proof is not verified.",
		Edits: []Edit{{voteGo, `	if !c.signed(p.Signer, signedBytes(d, p.Signer, p.Hashes), &p.Signature) {
		return machine.Refuse(CodeBadSignature, "", "the signature of member %d does not verify", p.Signer)
	}
`, ``}},
	},
	{
		Name: "frame-fields-unchecked", Breaks: "Votes whose fields do not fit their phase are decoded.",
		Edits: []Edit{
			{wireGo, `		r.want(v.check() == nil)
`, ``},
			{frameGo, `		if votes[i].refused = v.check(); votes[i].refused != nil {
			continue
		}
`, ``},
		},
	},
	{
		Name: "batch-believed-whole", Breaks: "Frames verified together are believed when the first of them verifies.",
		Edits: []Edit{{frameGo, `		i := at[k]
		if !ok {`, `		i := at[k]
		if !ok && k == 0 {`}},
		Unseen: "simulated networks verify frames one by one",
	},
	{
		Name: "duplicate-keys-accepted", Breaks: "Two members of a committee may share a key.",
		Edits:  []Edit{{committeeGo, `		if other, dup := seen[class]; dup {`, `		if other, dup := seen[class]; dup && other == m.Node {`}},
		Unseen: "simulated committees have distinct keys",
	},
	{
		Name: "keys-compared-by-bytes", Breaks: "Two spellings of keys that one private scalar can use pass as two keys.",
		Edits: []Edit{{committeeGo, `		class := key.Class()
`, `		class := m.Key
`}},
		Unseen: "simulated committees have distinct keys",
	},
	{
		Name: "opposite-keys-accepted", Breaks: "The keys of a scalar and of its negative pass as two keys.",
		Edits: []Edit{{committeeGo, `		class[31] &= 0x7f // the key of scalar −a is at hand for whoever holds a
`, ``}},
		Unseen: "simulated committees have distinct keys",
	},
}
