// Package freeport finds ports for tests whose nodes are killed and come back.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Find is a loopback port that nobody listens on now, below those that systems
// give to outgoing connections: a killed node finds it free again.
func Find(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}
