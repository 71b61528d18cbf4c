package p2p

import (
	"bufio"
	"io"

	libp2ppeer "github.com/libp2p/go-libp2p/core/peer"
)

type peerID = libp2ppeer.ID

func newReader(r io.Reader) *bufio.Reader { return bufio.NewReader(r) }
func newWriter(w io.Writer) *bufio.Writer { return bufio.NewWriter(w) }
