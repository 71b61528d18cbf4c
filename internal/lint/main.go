// Command lint holds the rules of the house that no general linter knows:
// which tier may import which, and what a pure package must not do.
//
//	go run ./internal/lint ./...
//
// It prints one finding a line and exits 1 when there is any. Rules:
//
//	tier      a package imports only packages of its own tier's reach (tiers.go)
//	import    a pure package imports neither I/O nor a global random source
//	clock     a pure package does not ask for the time
//	goroutine a pure package starts no goroutine and uses no channel
//	maporder  a pure package ranges over a map only under a comment "// order: why it does not matter"
//	fuse      a numeric package wraps every product in float64(x*y), so that no compiler fuses it
//	libm      a numeric package calls no function of package math whose last bit differs between machines
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	patterns := os.Args[1:]
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedDeps}, patterns...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "lint:", err)
		os.Exit(2)
	}
	if packages.PrintErrors(pkgs) > 0 {
		os.Exit(2)
	}
	findings := Check(pkgs)
	for _, f := range findings {
		fmt.Println(f)
	}
	if len(findings) > 0 {
		os.Exit(1)
	}
}
