package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// load type-checks one source text as if it stood in the given package.
func load(t *testing.T, pkgPath, src string) *packages.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: empty{}, Error: func(error) {}}
	_, _ = conf.Check(pkgPath, fset, []*ast.File{file}, info) // names of imported packages do not resolve here, and need not
	return &packages.Package{PkgPath: pkgPath, Fset: fset, Syntax: []*ast.File{file}, TypesInfo: info}
}

// empty imports every package as an empty one: the rules ask for names only.
type empty struct{}

func (empty) Import(p string) (*types.Package, error) {
	pkg := types.NewPackage(p, path.Base(p))
	pkg.MarkComplete()
	return pkg, nil
}

func TestEveryRuleFindsItsFault(t *testing.T) {
	for name, c := range map[string]struct{ path, src, want string }{
		"tier":          {"acp", `import _ "github.com/deliberd/deliberd/fsm"`, "tier"},
		"other machine": {"acp", `import _ "github.com/deliberd/deliberd/agora"`, "tier"},
		"lower tier":    {"acp", `import _ "github.com/deliberd/deliberd/machine"`, ""},
		"import":        {"fsm", `import _ "os"`, "import"},
		"import net":    {"fsm", `import _ "net/http"`, "import"},
		"clock":         {"fsm", "import \"time\"\nvar x = time.Now()", "clock"},
		"goroutine":     {"fsm", "func f() { go f() }", "goroutine"},
		"channel":       {"fsm", "var c chan int", "goroutine"},
		"maporder":      {"fsm", "func f(m map[int]int) { for range m {} }", "maporder"},
		"maporder said": {"fsm", "func f(m map[int]int) int { n := 0\n// order: a sum of integers\nfor _, v := range m { n += v }; return n }", ""},
		"slice":         {"fsm", "func f(m []int) { for range m {} }", ""},
		"impure tier":   {"store", "func f() { go f() }", ""},
		"fuse":          {"semantics", "func f(a, b, c float64) float64 { return a*b + c }", "fuse"},
		"not fused":     {"semantics", "func f(a, b, c float64) float64 { return float64(a*b) + c }", ""},
		"chain":         {"semantics", "func f(a, b, c float64) float64 { return float64(a*b*c) + c }", ""},
		"scaled":        {"semantics", "func f(a, c float64) float64 { return 2*a + c }", ""},
		"not scaled":    {"semantics", "func f(a, c float64) float64 { return 3*a + c }", "fuse"},
		"integers":      {"semantics", "func f(a, b, c int) int { return a*b + c }", ""},
		"constant":      {"semantics", "const f = 2.5 * 3.5", ""},
		"libm":          {"semantics", "import \"math\"\nfunc f(x float64) float64 { return math.Exp(x) }", "libm"},
		"exact libm":    {"semantics", "import \"math\"\nfunc f(x float64) float64 { return math.Floor(x) }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Check([]*packages.Package{load(t, module+c.path, "package x\n"+c.src)})
			switch {
			case c.want == "" && len(got) > 0:
				t.Fatalf("found %q where nothing is wrong", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], ": "+c.want+": ")):
				t.Fatalf("found %q, want one %s", got, c.want)
			}
		})
	}
}
