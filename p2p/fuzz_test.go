package p2p

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

// FuzzRecv: bytes from a peer never do more than fail, and frames that are
// written are read back.
func FuzzRecv(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 0})
	f.Add([]byte{0, 0, 0, 3, 1, '{', '}'})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &Host{heard: map[libp2ppeer.ID]time.Time{}}
		s := &Stream{h: h, greeted: true, r: bufio.NewReader(bytes.NewReader(b))}
		for {
			frame, err := s.Recv()
			if err != nil {
				return
			}
			var out bytes.Buffer
			w := &Stream{w: bufio.NewWriter(&out)}
			if err := w.Send(frame); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(b, out.Bytes()) {
				t.Fatalf("frame %x was not in %x", frame, b)
			}
		}
	})
}
