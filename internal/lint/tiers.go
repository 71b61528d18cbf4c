package main

import "strings"

const module = "github.com/deliberd/deliberd/"

// tiers is the house: a package imports packages of lower tiers, and of its
// own tier only where the tier says so. Packages of tier 2 are machines and
// never import each other.
var tiers = map[string]int{
	"internal/canon": 0, "internal/sign": 0, "internal/detmath": 0, "machine": 0, "machine/machinetest": 0, "internal/vectors": 0,

	"semantics": 1, "reputation": 1, "constitution": 1, "merkle": 1, "psi": 1, "pbft": 1, "pbft/quorum": 1, "pbft/sim": 1, "pbft/model": 1, "attest": 1,

	"registry": 2, "membership": 2, "acp": 2, "agora": 2, "bounce": 2, "coalition": 2, "deliberation": 2,

	"fsm": 3, "fsm/standard": 3,

	"internal/freeport": 4, "store": 4, "p2p": 4, "raftpath": 4, "raftpath/guard": 4, "bftpath": 4, "pbft/sim/campaign": 4, "pbft/mutants": 4,

	"api": 5, "api/rpc": 5, "api/events": 5, "internal/token": 5, "node": 5, "client": 5,

	"cmd/deliberd": 6, "jepsen": 6,
}

// tierOf finds the tier of an import path: its own, or that of the nearest
// folder above it. ok is false for paths outside the house.
func tierOf(path string) (tier int, name string, ok bool) {
	name, ok = strings.CutPrefix(path, module)
	if !ok {
		return 0, "", false
	}
	for at := name; ; {
		if t, found := tiers[at]; found {
			return t, name, true
		}
		cut := strings.LastIndexByte(at, '/')
		if cut < 0 {
			return 0, name, false
		}
		at = at[:cut]
	}
}

// pure reports whether a package of the house must be pure: tiers 0 to 3,
// but for helpers of tests.
func pure(path string) bool {
	tier, name, ok := tierOf(path)
	return ok && tier <= 3 && name != "internal/vectors" && name != "machine/machinetest"
}

// numeric packages compute replicated floating point numbers.
var numeric = map[string]bool{
	module + "internal/detmath": true, module + "semantics": true, module + "reputation": true, module + "deliberation": true,
}

// mayImport says whether from may import to inside the house.
func mayImport(from, to string) bool {
	ft, fn, ok := tierOf(from)
	tt, tn, known := tierOf(to)
	if !ok || !known {
		return true
	}
	if ft != tt {
		return ft > tt
	}
	if ft == 2 { // machines: only inside their own folder
		return top(fn) == top(tn)
	}
	return true
}

func top(name string) string {
	head, _, _ := strings.Cut(name, "/")
	return head
}

// impure imports bring I/O, clocks or a global random source.
func impureImport(path string) bool {
	switch path {
	case "os", "net", "syscall", "math/rand", "math/rand/v2", "crypto/rand", "sync/atomic", "os/exec", "io/ioutil", "log", "log/slog", "context":
		return true
	}
	for _, prefix := range []string{"net/", "os/", "github.com/libp2p/", "github.com/hashicorp/", "go.etcd.io/", "golang.org/x/sys"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
