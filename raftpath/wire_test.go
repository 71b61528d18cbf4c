package raftpath

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/raftpath/guard"
)

func sampleAppend() *guard.Append {
	return &guard.Append{Term: 3, Prev: 7, PrevTerm: 2, Commit: 6, Seal: []byte("seal"), Entries: []*raft.Log{
		{Index: 8, Term: 2, Type: raft.LogCommand, Data: []byte("x"), AppendedAt: time.Unix(0, 99)},
		{Index: 9, Term: 3, Type: raft.LogNoop, Data: []byte{}},
		{Index: 10, Term: 3, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(configurationOf([]string{"a", "b"}))},
	}}
}

func TestWhatTheWireCannotSay(t *testing.T) {
	good := sampleAppend()
	if m, err := decodeAppend(encodeAppend(good)[1:]); err != nil || !reflect.DeepEqual(m, good) {
		t.Fatalf("%v\n%+v\n%+v", err, m, good)
	}
	for name, spoil := range map[string]func(*guard.Append){
		"term 0":                          func(m *guard.Append) { m.Term = 0 },
		"a term beyond all bounds":        func(m *guard.Append) { m.Term = 1<<64 - 1 },
		"a previous entry without a term": func(m *guard.Append) { m.PrevTerm = 0 },
		"a previous term above the term":  func(m *guard.Append) { m.PrevTerm = 4; m.Entries = nil },
		"an entry of a later term":        func(m *guard.Append) { m.Entries[2].Term = 4 },
		"terms that go back":              func(m *guard.Append) { m.Entries[0].Term = 1 },
		"a deprecated type of entry":      func(m *guard.Append) { m.Entries[0].Type = raft.LogAddPeerDeprecated },
		"an unknown type of entry":        func(m *guard.Append) { m.Entries[0].Type = 200 },
		"a noop with data":                func(m *guard.Append) { m.Entries[1].Data = []byte("x") },
		"a configuration raft trips over": func(m *guard.Append) { m.Entries[2].Data = []byte("\xc1") },
		"a configuration with a non-voter": func(m *guard.Append) {
			m.Entries[2].Data = configData(raft.Server{Suffrage: raft.Nonvoter, ID: "a", Address: "a"})
		},
		"a server under another's address": func(m *guard.Append) { m.Entries[2].Data = configData(raft.Server{ID: "a", Address: "b"}) },
		"a server twice":                   func(m *guard.Append) { m.Entries[2].Data = configData(server("a"), server("a")) },
		"an entry that is too large":       func(m *guard.Append) { m.Entries[0].Data = make([]byte, maxEntryBytes+1) },
	} {
		m := sampleAppend()
		spoil(m)
		if _, err := decodeAppend(encodeAppend(m)[1:]); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := decodeAppend(append(encodeAppend(good)[1:], 0)); err == nil {
		t.Error("a byte too many was taken")
	}
	// Indexes are not part of it: a gap cannot be said.
	gap := sampleAppend()
	gap.Entries[1].Index = 12
	if m, err := decodeAppend(encodeAppend(gap)[1:]); err != nil || m.Entries[1].Index != 9 {
		t.Errorf("a gap: %v", err)
	}
}

func configData(s ...raft.Server) []byte {
	return raft.EncodeConfiguration(raft.Configuration{Servers: s})
}

func TestRepliesAndRefusalsComeBackAsTheyWere(t *testing.T) {
	a := guard.AppendReply{Term: 3, LastLog: 9, Success: true, NoRetryBackoff: true}
	if b, err := parseReply(encodeAppendReply(a)); err != nil {
		t.Error(err)
	} else if got, err := decodeAppendReply(b); err != nil || got != a {
		t.Errorf("%+v, %v", got, err)
	}
	v := guard.VoteReply{Term: 3, Granted: true, Seal: []byte("s")}
	if b, err := parseReply(encodeVoteReply(v)); err != nil {
		t.Error(err)
	} else if got, err := decodeVoteReply(b); err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := parseReply(refusalReply(machine.Refuse("some_code", "", "because")))
	if r, ok := machine.IsRefusal(err); !ok || r.Code != "some_code" || r.Message != "because" {
		t.Errorf("%v", err)
	}
	if _, err := parseReply(refusalReply(errFrame)); code(err) != CodeNotReady {
		t.Errorf("%v", err)
	}
}

// FuzzRaftFrames: no frame does more than fail, and what is accepted has one
// spelling.
func FuzzRaftFrames(f *testing.F) {
	f.Add(encodeAppend(sampleAppend()))
	f.Add(encodeAppend(&guard.Append{Term: 1}))
	f.Add(encodeVote(&guard.Vote{Term: 2, LastIndex: 1, LastTerm: 1, Pre: true, Seal: []byte("s")}))
	f.Add(offer{1, 2}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) == 0 {
			return
		}
		var again []byte
		switch b[0] {
		case kindAppend:
			if m, err := decodeAppend(b[1:]); err == nil {
				again = encodeAppend(m)
				if m2, err := decodeAppend(again[1:]); err != nil || !reflect.DeepEqual(m, m2) {
					t.Fatalf("%+v became %+v, %v", m, m2, err)
				}
				return // varints may be longer than need be
			}
		case kindVote:
			if m, err := decodeVote(b[1:]); err == nil {
				again = encodeVote(m)
				if m2, err := decodeVote(again[1:]); err != nil || !reflect.DeepEqual(m, m2) {
					t.Fatalf("%+v became %+v, %v", m, m2, err)
				}
				return
			}
		case kindOffer:
			if m, err := decodeOffer(b[1:]); err == nil && !bytes.Equal(m.encode(), b) {
				t.Fatalf("%+v has another spelling", m)
			}
		}
		_, _ = parseReply(b)
		_, _ = decodeAppendReply(b)
		_, _ = decodeVoteReply(b)
	})
}

// FuzzSyncFrames: the same for the sync and forward protocols and for what is kept.
func FuzzSyncFrames(f *testing.F) {
	last := &raft.Log{Index: 9, Term: 2, Type: raft.LogCommand, Data: []byte("x")}
	f.Add(syncRequest{1, 2, 3, 4}.encode())
	f.Add(stateHeader{5, last}.encode()[1:])
	f.Add(entriesFrame{beatFrame: beatFrame{9, "n"}, entries: []*raft.Log{last}, check: machine.Checkpoint{Seq: 4, Size: 8}}.encode()[1:])
	f.Add(beatFrame{9, "n"}.append(nil))
	f.Add(plan{generation: 1, last: last, config: []byte("c"), configAt: 1}.encode())
	f.Add(Head{1, 2, 3, []byte("c"), 1}.encode())
	f.Add(encodeResults([]result{{answer: []byte("a"), seq: 4}, {err: machine.Refuse("x", "", "y")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = decodeSyncRequest(b)
		_, _ = decodeStateHeader(b)
		_, _ = decodeBeatFrame(b)
		_ = decodeResults(b, make([]result, 2))
		if m, err := decodeStanding(b); err == nil {
			if m2, err := decodeStanding(m.encode()); err != nil || m != m2 {
				t.Fatalf("%+v became %+v, %v", m, m2, err)
			}
		}
		if m, err := decodeEntriesFrame(b); err == nil {
			m2, err := decodeEntriesFrame(m.encode()[1:])
			if err != nil || !reflect.DeepEqual(m, m2) {
				t.Fatalf("%+v became %+v, %v", m, m2, err)
			}
		}
		if m, err := decodePlan(b); err == nil {
			if m2, err := decodePlan(m.encode()); err != nil || !reflect.DeepEqual(m, m2) {
				t.Fatalf("%+v became %+v, %v", m, m2, err)
			}
		}
		if m, err := decodeHead(b); err == nil {
			if m2, err := decodeHead(m.encode()); err != nil || !reflect.DeepEqual(m, m2) {
				t.Fatalf("%+v became %+v, %v", m, m2, err)
			}
		}
	})
}
