package embedded_test

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/p2p/net/gostream"
)

// exchange is the floor of a PBFT decision: three one-way exchanges among four
// nodes over libp2p streams, each message signed and checked by the standard
// library, one fdatasync of a vote before the commit is sent. It has no views,
// proves nothing, remembers nothing and believes what it is told.
type exchange struct {
	nodes  []*exchanger
	number uint64
	done   chan struct{} // one a node and decision
}

const exchangeProtocol = "/bare/exchange/1"

// Messages are phase, number, digest and signature.
const (
	signedSize  = 1 + 8 + 32
	messageSize = signedSize + ed25519.SignatureSize
)

type exchanger struct {
	x     *exchange
	i     int
	key   ed25519.PrivateKey
	peers []net.Conn
	file  *os.File
	inbox chan [messageSize + 1]byte // and from whom
}

func newExchange(b *testing.B, hosts []host.Host) *exchange {
	x := &exchange{done: make(chan struct{}, 64)}
	dir := b.TempDir()
	for i, h := range hosts {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		file, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err == nil {
			_, err = file.Write(make([]byte, 1<<20)) // room ahead, as a journal has
		}
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			b.Fatal(err)
		}
		n := &exchanger{x: x, i: i, key: key, file: file, peers: make([]net.Conn, len(hosts)), inbox: make(chan [messageSize + 1]byte, 256)}
		x.nodes = append(x.nodes, n)
		n.listen(b, h)
	}
	for i, n := range x.nodes {
		for k, h := range hosts {
			if k == i {
				continue
			}
			conn, err := gostream.Dial(b.Context(), hosts[i], h.ID(), exchangeProtocol)
			if err != nil {
				b.Fatal(err)
			}
			n.peers[k] = conn
			if _, err := conn.Write([]byte{byte(i)}); err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, n := range x.nodes {
		go n.run()
	}
	return x
}

func (n *exchanger) listen(b *testing.B, h host.Host) {
	listener, err := gostream.Listen(h, exchangeProtocol)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go n.read(conn)
		}
	}()
}

func (n *exchanger) read(conn net.Conn) {
	r := bufio.NewReader(conn)
	from, err := r.ReadByte()
	if err != nil {
		return
	}
	m := [messageSize + 1]byte{messageSize: from}
	for {
		if _, err := io.ReadFull(r, m[:messageSize]); err != nil {
			return
		}
		n.inbox <- m
	}
}

func (n *exchanger) send(phase byte, number uint64, digest []byte) {
	m := append(binary.BigEndian.AppendUint64([]byte{phase}, number), digest...)
	m = append(m, ed25519.Sign(n.key, m)...)
	for _, p := range n.peers {
		if p != nil {
			_, _ = p.Write(m) // a broken stream shows as a decision that never comes
		}
	}
}

// run counts one decision at a time.
func (n *exchanger) run() {
	const quorum = 3
	var at, last uint64
	var prepares, commits int
	var proposed, prepared bool
	var digest [32]byte
	for m := range n.inbox {
		from := int(m[messageSize])
		if from != n.i && !ed25519.Verify(n.x.nodes[from].key.Public().(ed25519.PublicKey), m[:signedSize], m[signedSize:messageSize]) {
			panic("bad signature")
		}
		number := binary.BigEndian.Uint64(m[1:])
		if number <= last {
			continue // late words on a decision that is made
		}
		if number != at {
			at, prepares, commits, proposed, prepared = number, 0, 0, false, false
		}
		switch m[0] {
		case 1:
			proposed, digest = true, [32]byte(m[9:])
			prepares++ // the primary's
			if from == n.i {
				n.send(1, number, digest[:])
			} else {
				prepares++
				n.send(2, number, digest[:])
			}
		case 2:
			prepares++
		case 3:
			commits++
		}
		if proposed && !prepared && prepares >= quorum {
			prepared = true
			if _, err := n.file.WriteAt(m[:], int64(number%4096)*messageSize); err != nil {
				panic(err)
			}
			if err := datasync(n.file); err != nil {
				panic(err)
			}
			commits++
			n.send(3, number, digest[:])
		}
		if prepared && commits >= quorum {
			last = number
			n.x.done <- struct{}{}
		}
	}
}

// decide runs one decision and returns when all nodes have it.
func (x *exchange) decide() {
	x.number++
	var m [messageSize + 1]byte
	m[0] = 1
	binary.BigEndian.PutUint64(m[1:], x.number)
	x.nodes[0].inbox <- m
	for range x.nodes {
		<-x.done
	}
}

// stop ends the nodes; the hosts are the caller's.
func (x *exchange) stop() {
	for _, n := range x.nodes {
		for _, p := range n.peers {
			if p != nil {
				_ = p.Close()
			}
		}
		_ = n.file.Close()
	}
}
