package p2p

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/deliberd/deliberd/machine"
)

// The protocols nodes speak.
const (
	Raft    = "raft"    // ordering, between voters of one generation
	Notice  = "notice"  // commit notices, beside Raft
	Forward = "forward" // actions and reads to whoever can serve them
	Sync    = "sync"    // state and entries to whoever is behind
	BFT     = "bft"     // frames of pbft and attest
	Join    = "join"    // invitations
)

// Protocols lists all protocols.
var Protocols = []string{Raft, Notice, Forward, Sync, BFT, Join}

// sameGeneration holds the protocols that mean nothing across a reset. The
// others are how a node learns of one.
var sameGeneration = map[string]bool{Raft: true, Notice: true}

func wireID(name string) protocol.ID { return protocol.ID("/deliberd/" + name + "/1") }

// MaxFrame bounds a frame on every protocol, in bytes.
const MaxFrame = 8 << 20

const (
	frameOK  byte = 0 // payload
	frameErr byte = 1 // JSON of a machine.Refusal; the stream ends
)

// helloSize is genesis, then generation.
const helloSize = 32 + 8

// Stream is a two-way sequence of frames with one peer. One goroutine may
// send while another receives.
type Stream struct {
	h          *Host
	s          network.Stream
	peer       string
	id         peer.ID
	generation uint64
	r          *bufio.Reader
	w          *bufio.Writer
	greeted    bool // the other side's hello has been checked
	once       sync.Once
}

func (h *Host) wrap(s network.Stream) *Stream {
	id := s.Conn().RemotePeer()
	return &Stream{h: h, s: s, peer: id.String(), id: id, r: bufio.NewReaderSize(s, 64<<10), w: bufio.NewWriterSize(s, 64<<10)}
}

// Peer is the authenticated peer id at the other end.
func (s *Stream) Peer() string { return s.peer }

// Generation is the peer's raft generation as its hello said; 0 before the
// first frame has been received.
func (s *Stream) Generation() uint64 { return s.generation }

// SetDeadline bounds everything sent and received until changed; the zero
// time lifts it.
func (s *Stream) SetDeadline(t time.Time) { s.deadline(s.s.SetDeadline, t) }

// SetReadDeadline is SetDeadline for receiving.
func (s *Stream) SetReadDeadline(t time.Time) { s.deadline(s.s.SetReadDeadline, t) }

// SetWriteDeadline is SetDeadline for sending.
func (s *Stream) SetWriteDeadline(t time.Time) { s.deadline(s.s.SetWriteDeadline, t) }

// deadline ignores the error: a muxed stream gives one only when it is
// closed, and then reading and writing say so too.
func (s *Stream) deadline(set func(time.Time) error, t time.Time) { _ = set(t) }

// Send writes one frame and flushes it.
func (s *Stream) Send(frame []byte) error {
	if err := s.Write(frame); err != nil {
		return err
	}
	return s.Flush()
}

// Write puts one frame into the buffer; Flush sends what is there.
func (s *Stream) Write(frame []byte) error { return s.write(frameOK, frame) }

// Flush sends buffered frames.
func (s *Stream) Flush() error { return s.w.Flush() }

func (s *Stream) write(kind byte, frame []byte) error {
	if len(frame) > MaxFrame {
		return machine.Refuse(CodeFrameTooLarge, "", "a frame has at most %d bytes, got %d", MaxFrame, len(frame))
	}
	var head [5]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(frame)+1))
	head[4] = kind
	if _, err := s.w.Write(head[:]); err != nil {
		return err
	}
	_, err := s.w.Write(frame)
	return err
}

// SendError tells the peer why nothing more will come.
func (s *Stream) SendError(err error) error {
	refusal, ok := machine.IsRefusal(err)
	if !ok {
		refusal = &machine.Refusal{Code: CodeInternal, Message: "the request failed at the other node", Fix: "try another node; its log has the cause"}
	}
	text, err := json.Marshal(refusal)
	if err != nil {
		return err
	}
	if err := s.write(frameErr, text); err != nil {
		return err
	}
	return s.Flush()
}

// Recv reads one frame. A peer's SendError comes back as its [machine.Refusal].
func (s *Stream) Recv() ([]byte, error) {
	if !s.greeted {
		if err := s.readHello(); err != nil {
			return nil, err
		}
	}
	return s.recv()
}

func (s *Stream) recv() ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(s.r, head[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n < 1 || n > MaxFrame+1 {
		return nil, machine.Refuse(CodeFrameTooLarge, "", "peer %s sent a frame of %d bytes", s.peer, n)
	}
	frame := make([]byte, n-1)
	if _, err := io.ReadFull(s.r, frame); err != nil {
		return nil, err
	}
	s.h.hear(s.id)
	switch head[4] {
	case frameOK:
		return frame, nil
	case frameErr:
		err := remoteError(frame)
		if err.Code == CodeRemoved {
			s.h.tellRemoved(s.peer)
		}
		return nil, err
	}
	return nil, fmt.Errorf("peer %s sent a frame of unknown kind %d", s.peer, head[4])
}

// remoteError is a peer's refusal, as far as it is one.
func remoteError(frame []byte) *machine.Refusal {
	r := new(machine.Refusal)
	if err := json.Unmarshal(frame, r); err != nil || r.Code == "" {
		return &machine.Refusal{Code: CodeInternal, Message: "the other node failed without saying why"}
	}
	return r
}

// Close ends the stream in order: what was sent arrives.
func (s *Stream) Close() error { return s.s.Close() }

// Reset ends the stream at once, at both ends.
func (s *Stream) Reset() { s.once.Do(func() { _ = s.s.Reset() }) }

func (s *Stream) writeHello() error {
	hello := make([]byte, 0, helloSize)
	hello = append(hello, s.h.genesis[:]...)
	hello = binary.BigEndian.AppendUint64(hello, s.h.cfg.Generation())
	return s.write(frameOK, hello)
}

// readHello checks that the peer belongs to this cluster, and for some
// protocols to this generation.
func (s *Stream) readHello() error {
	hello, err := s.recv()
	if err != nil {
		return err
	}
	if len(hello) != helloSize || string(hello[:32]) != string(s.h.genesis[:]) {
		return machine.Refuse(CodeWrongGenesis, "check the genesis file and the addresses", "peer %s belongs to another cluster", s.peer)
	}
	s.generation = binary.BigEndian.Uint64(hello[32:])
	if own := s.h.cfg.Generation(); sameGeneration[s.protocol()] && s.generation != own {
		return machine.Refuse(CodeWrongGeneration, "fetch the state of the newer generation", "peer %s is in generation %d, this node in %d", s.peer, s.generation, own).
			With("generation", own)
	}
	s.greeted = true
	return nil
}

func (s *Stream) protocol() string {
	for _, name := range Protocols {
		if wireID(name) == s.s.Protocol() {
			return name
		}
	}
	return ""
}

// Open opens a stream. The caller ends it with Close or Reset. Nothing is
// known of the peer's hello before the first Recv.
func (h *Host) Open(ctx context.Context, id, proto string) (*Stream, error) {
	p, err := parsePeer(id)
	if err != nil {
		return nil, err
	}
	return h.open(ctx, p, proto)
}

func (h *Host) open(ctx context.Context, p peer.ID, proto string) (*Stream, error) {
	if !h.admitted(p) {
		return nil, machine.Refuse(CodeNotAdmitted, "", "this node does not talk to %s", p)
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.DialTimeout)
	defer cancel()
	h.forgive(p)
	raw, err := h.h.NewStream(ctx, p, wireID(proto))
	if err != nil {
		return nil, h.unreachable(p, err)
	}
	s := h.wrap(raw)
	if err := s.writeHello(); err != nil {
		s.Reset()
		return nil, h.unreachable(p, err)
	}
	return s, nil
}

func (h *Host) unreachable(p peer.ID, err error) error {
	return fmt.Errorf("%w (%w)", machine.Refuse(CodeUnreachable, "check that it runs and its address", "node %s cannot be reached", p), err)
}

// HandleStream serves a protocol: f runs in its own goroutine for each stream
// and owns it until it returns. A returned error is told to the peer before
// the stream ends. The peer's hello has been checked when f is called, and
// ctx ends with the host.
func (h *Host) HandleStream(proto string, f func(ctx context.Context, s *Stream) error) {
	h.h.SetStreamHandler(wireID(proto), func(raw network.Stream) {
		if !h.begin() {
			_ = raw.Reset()
			return
		}
		defer h.wg.Done()
		s := h.wrap(raw)
		defer s.Reset()
		s.SetDeadline(time.Now().Add(h.cfg.CallTimeout))
		err := s.welcome()
		if err == nil && h.removed(s.id) {
			err = machine.Refuse(CodeRemoved, "a removed node needs a new data folder and an invitation", "node %s is no longer a member", s.peer)
		}
		if err == nil {
			s.SetDeadline(time.Time{})
			err = f(h.ctx, s)
		}
		h.finish(s, err)
	})
}

// begin counts a handler unless the host is closing.
func (h *Host) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wg.Add(1)
	return true
}

// welcome exchanges hellos at the serving side. Ours goes out even when
// theirs is refused, so that the peer can tell which cluster it has reached.
func (s *Stream) welcome() error {
	errRead := s.readHello()
	if err := s.writeHello(); err != nil {
		return err
	}
	if err := s.Flush(); err != nil {
		return err
	}
	return errRead
}

// finish tells the peer how its stream ended.
func (h *Host) finish(s *Stream, err error) {
	switch {
	case err == nil:
		if s.Flush() == nil {
			_ = s.s.Close()
		}
		return
	case errors.Is(err, io.EOF) || errors.Is(err, network.ErrReset) || h.ctx.Err() != nil:
		return
	}
	if _, ok := machine.IsRefusal(err); !ok {
		h.log.Warn("stream failed", "peer", s.peer, "protocol", s.protocol(), "err", err)
	}
	s.SetWriteDeadline(time.Now().Add(time.Second))
	if s.SendError(err) == nil {
		_ = s.s.Close()
		// The peer reads the error only if the reset does not overtake it.
		s.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = io.Copy(io.Discard, s.s)
	}
}
