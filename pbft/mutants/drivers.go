package main

// drivers neglect what package pbft demands of its caller.
var drivers = []Mutant{
	{
		Name: "driver-sends-before-storing", Breaks: "A frame is sent while it is still on its way to the disk.",
		Edits: []Edit{{flushGo, `	l.out, l.waiting, l.notes, l.urgent = nil, nil, nil, false
	l.flying = batch
`, `	l.out, l.waiting, l.notes, l.urgent = nil, nil, nil, false
	l.flying = batch
	for _, f := range batch.frames {
		l.broadcast(f.committee, f.bytes)
	}
`}},
	},
	{
		Name: "driver-goes-on-after-failed-write", Breaks: "A failed write is logged, and signing goes on.",
		Edits: []Edit{{flushGo, `	if err != nil {
		l.d.fail(fmt.Errorf("journal: %w", err))
		return
	}
	for`, `	if err != nil {
		l.d.log.Error("journal", "err", err)
	}
	for`}},
	},
	{
		Name: "driver-sends-after-failed-write", Breaks: "After a failed write signing ends, but what was not stored is sent.",
		Edits: []Edit{{flushGo, `		l.d.fail(fmt.Errorf("journal: %w", err))
		return
	}
	for`, `		l.d.fail(fmt.Errorf("journal: %w", err))
	}
	for`}},
	},
	{
		Name: "driver-does-not-sync", Breaks: "Records are written and not synced.",
		Edits: []Edit{{journalGo, `	if err := datasync(j.file); err != nil {
		return err
	}
	j.next++`, `	j.next++`}},
	},
	{
		Name: "driver-ignores-failed-sync", Breaks: "A failed sync counts as stored.",
		Edits: []Edit{{journalGo, `	if err := datasync(j.file); err != nil {
		return err
	}
	j.next++`, `	_ = datasync(j.file)
	j.next++`}},
	},
	{
		Name: "driver-does-not-store-certificates", Breaks: "The prepared certificate behind a commit is not stored.",
		Edits: []Edit{{flushGo, `		l.notes = append(l.notes, item{itemPrepared, append(key[:], r.Prepared.Encode()...)})
`, `		_ = key
`}},
	},
	{
		Name: "driver-forgets-certificates-in-rewriting", Breaks: "Rewriting the journal drops the prepared certificates of instances under way.",
		Edits: []Edit{{recallGo, `		for _, p := range r.Prepared {
			items = append(items, item{itemPrepared, append(append([]byte(nil), key[:]...), p.Encode()...)})
		}
`, ``}},
	},
	{
		Name: "driver-forgets-votes-in-rewriting", Breaks: "Rewriting the journal drops the votes of instances under way.",
		Edits: []Edit{{recallGo, `			if !written[f] {
				written[f] = true`, `			if !written[f] && r.Certificate != nil {
				written[f] = true`}},
	},
	{
		Name: "driver-forgets-the-unstarted-in-rewriting", Breaks: "Rewriting the journal drops what it holds of instances not started again yet.",
		Edits: []Edit{{recallGo, `	for key, r := range l.recalled {
		keep(key, r)
	}
`, ``}},
	},
	{
		Name: "driver-forgets-the-forgotten-in-rewriting", Breaks: "Rewriting the journal drops which instances were forgotten.",
		Edits: []Edit{{recallGo, `	for _, key := range l.d.forgotten.order {
		items = append(items, item{itemForgotten, append([]byte(nil), key[:]...)})
	}
`, ``}},
	},
	{
		Name: "driver-forgets-guilt-in-rewriting", Breaks: "Rewriting the journal drops the proofs of guilt.",
		Edits: []Edit{{recallGo, `		items = append(items, item{itemGuilt, l.d.guilty.proofs[i].Encode()})
`, `		_ = i
`}},
	},
	{
		Name: "driver-keeps-guilt-in-memory", Breaks: "A proof of guilt is handed out and not stored.",
		Edits: []Edit{{flushGo, `l.notes, l.urgent = append(l.notes, item{itemGuilt, g.Encode()}), true`, `l.urgent = true`}},
	},
	{
		Name: "driver-lets-guilt-wait", Breaks: "A proof of guilt is stored only when the next vote is.",
		Edits: []Edit{{flushGo, `item{itemGuilt, g.Encode()}), true`, `item{itemGuilt, g.Encode()}), false`}},
	},
	{
		Name: "driver-keeps-all-guilt", Breaks: "Every proof against a voter is kept, as many as it cares to make.",
		Edits: []Edit{{dockGo, `	if _, ok := d.of[who]; ok {
		return false
	}
`, ``}},
	},
	{
		Name: "driver-starts-afresh", Breaks: "A restarted driver does not give its engines what was stored.",
		Edits: []Edit{{loopGo, `		cfg.Restored = *r
		delete`, `		delete`}},
	},
	{
		Name: "driver-creates-over-a-journal", Breaks: "Create empties a journal that is there.",
		Edits: []Edit{{journalGo, `	case errors.Is(err, os.ErrNotExist) && create:`, `	case create:`}},
	},
	{
		Name: "driver-creates-unasked", Breaks: "A lost journal is replaced by an empty one.",
		Edits: []Edit{{journalGo, `	case errors.Is(err, os.ErrNotExist) && create:`, `	case errors.Is(err, os.ErrNotExist):`},
			{journalGo, `	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: %s; without it this key must not sign", ErrNoJournal, j.path)
`, ``}},
	},
	{
		Name: "driver-takes-any-key", Breaks: "A committee may list another key for this node.",
		Edits: []Edit{{driverGo, `	if self != pbft.Observer && prepared.Key(self) != d.pub {
		return nil, fmt.Errorf("%w: epoch %d lists another key for %s", ErrWrongKey, epoch, d.cfg.Self)
	}
`, ``}},
	},
	{
		Name: "driver-restarts-the-forgotten", Breaks: "An instance that was forgotten may start again.",
		Edits: []Edit{{driverGo, `	if d.forgotten.holds(key) {
		return fmt.Errorf("%w: %s %s", ErrForgotten, instance.Purpose, instance.ID)
	}
`, ``}},
	},
	{
		Name: "driver-changes-its-mind", Breaks: "An instance may be started again with another digest.",
		Edits: []Edit{{driverGo, `		if before.digest != digest {
			return`, `		if before.digest.IsZero() {
			return`}},
	},
	{
		Name: "driver-takes-relayed-frames", Breaks: "A frame is taken from a peer that did not sign it.",
		Edits: []Edit{{receiveGo, ` && in.committee.prepared.Node(a.frame.Signer()) == a.peer {`, ` {`}},
	},
	{
		Name: "driver-keeps-all-early-frames", Breaks: "The frames of instances not started yet have no bound.",
		Edits: []Edit{{receiveGo, `len(list.frames) > maxEarly || list.bytes > maxEarlyBytes {`, `list.bytes > 1<<62 {`}},
	},
	{
		Name: "driver-drops-early-frames", Breaks: "Frames of instances not started yet are dropped.",
		Edits: []Edit{{receiveGo, `			early = early || !l.buried(votes[i].Key)
`, ``}},
	},
	{
		Name: "driver-does-not-send-again", Breaks: "Stored frames are not sent again.",
		Edits: []Edit{{flushGo, `		l.resent[f] = true
		l.broadcast(c, f.Encode())`, `		l.resent[f] = true`}},
	},
	{
		Name: "driver-believes-torn-records", Breaks: "A record's checksum is not compared.",
		Edits: []Edit{{recordGo, `	if binary.BigEndian.Uint32(b[16:]) != recordSum(salt, record) {
		return 0, nil, 0, false
	}
`, ``}},
	},
	{
		Name: "driver-skips-broken-records", Breaks: "A broken record before whole ones ends the journal instead of stopping the node.",
		Edits: []Edit{{recordGo, `		if seq, _, _, ok := readRecord(salt, text[at:]); ok && seq >= next {`, `		if seq, _, _, ok := readRecord(salt, text[at:]); ok && seq < next {`}},
	},
}
