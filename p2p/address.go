package p2p

import (
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"github.com/deliberd/deliberd/machine"
)

// CheckListen refuses, with [CodeBadAddress], what a host cannot listen on,
// whatever the machine: nodes speak over TCP.
func CheckListen(addr string) error {
	_, err := listenAddr(addr)
	return err
}

// CheckDial refuses, with [CodeBadAddress], what no host can dial: an address
// to listen on, but for its port, which cannot be 0, with or without the
// peer's id behind it.
func CheckDial(addr string) error {
	a, err := parseAddr(addr)
	if err != nil {
		return err
	}
	bare, _ := peer.SplitAddr(a)
	if !overTCP(bare) {
		return notTCP(addr)
	}
	if port, err := bare.ValueForProtocol(multiaddr.P_TCP); err != nil || port == "0" {
		return machine.Refuse(CodeBadAddress, "name the port that others reach", "%q has port 0, which nobody can dial", addr)
	}
	return nil
}

func listenAddr(addr string) (multiaddr.Multiaddr, error) {
	a, err := parseAddr(addr)
	if err == nil && !overTCP(a) {
		err = notTCP(addr)
	}
	return a, err
}

func parseAddr(addr string) (multiaddr.Multiaddr, error) {
	a, err := multiaddr.NewMultiaddr(addr)
	if err != nil {
		return nil, machine.Refuse(CodeBadAddress, "write it like /ip4/127.0.0.1/tcp/7701", "%q is no multiaddr such as /ip4/127.0.0.1/tcp/7701", addr)
	}
	return a, nil
}

func notTCP(addr string) error {
	return machine.Refuse(CodeBadAddress, "write it like /ip4/127.0.0.1/tcp/7701", "%q is not a host and a TCP port such as /ip4/127.0.0.1/tcp/7701", addr)
}

// overTCP reports whether an address is a host and a TCP port, and no more.
func overTCP(a multiaddr.Multiaddr) bool {
	if len(a) == 3 && a[0].Protocol().Code == multiaddr.P_IP6ZONE {
		a = a[1:]
	}
	if len(a) != 2 || a[1].Protocol().Code != multiaddr.P_TCP {
		return false
	}
	switch a[0].Protocol().Code {
	case multiaddr.P_IP4, multiaddr.P_IP6, multiaddr.P_DNS, multiaddr.P_DNS4, multiaddr.P_DNS6:
		return true
	}
	return false
}
