package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
	"golang.org/x/tools/go/packages"
)

// Check applies every rule to the non-test files of the packages and returns
// findings as "file:line: rule: what", sorted.
func Check(pkgs []*packages.Package) []string {
	var out []string
	for _, p := range pkgs {
		c := checker{pkg: p, path: strings.TrimSuffix(p.PkgPath, "_test")}
		c.run()
		out = append(out, c.findings...)
	}
	sort.Strings(out)
	return out
}

type checker struct {
	pkg      *packages.Package
	path     string
	file     *ast.File
	orders   map[int]bool // lines that carry an order comment
	findings []string
}

func (c *checker) report(at token.Pos, rule, format string, args ...any) {
	pos := c.pkg.Fset.Position(at)
	c.findings = append(c.findings, fmt.Sprintf("%s:%d: %s: %s", pos.Filename, pos.Line, rule, fmt.Sprintf(format, args...)))
}

func (c *checker) run() {
	for _, f := range c.pkg.Syntax {
		if strings.HasSuffix(c.pkg.Fset.Position(f.Pos()).Filename, "_test.go") {
			continue
		}
		c.file = f
		c.imports()
		if pure(c.path) {
			c.readOrders()
			ast.Inspect(f, c.pure)
		}
		if numeric[c.path] {
			ast.Inspect(f, c.numeric)
		}
	}
}

func (c *checker) imports() {
	for _, spec := range c.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		if !mayImport(c.path, path) {
			c.report(spec.Pos(), "tier", "%s may not import %s", c.path, path)
		}
		if pure(c.path) && impureImport(path) {
			c.report(spec.Pos(), "import", "a pure package may not import %s", path)
		}
	}
}

// readOrders notes the lines with a comment "order: …", and the line after.
func (c *checker) readOrders() {
	c.orders = map[int]bool{}
	for _, group := range c.file.Comments {
		for _, comment := range group.List {
			if strings.Contains(comment.Text, "order: ") {
				line := c.pkg.Fset.Position(comment.End()).Line
				c.orders[line], c.orders[line+1] = true, true
			}
		}
	}
}

var clocks = map[string]bool{"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true, "Tick": true, "NewTimer": true, "NewTicker": true}

func (c *checker) pure(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.report(n.Pos(), "goroutine", "a pure package starts no goroutine")
	case *ast.ChanType:
		c.report(n.Pos(), "goroutine", "a pure package uses no channel")
	case *ast.SelectorExpr:
		if c.fromPackage(n, "time") && clocks[n.Sel.Name] {
			c.report(n.Pos(), "clock", "time.%s; replicated time is Ctx.Now", n.Sel.Name)
		}
	case *ast.RangeStmt:
		if t := c.pkg.TypesInfo.TypeOf(n.X); t != nil {
			if _, ok := t.Underlying().(*types.Map); ok && !c.orders[c.pkg.Fset.Position(n.Pos()).Line] {
				c.report(n.Pos(), "maporder", "a map's order is random; sort the keys, or say in a comment \"// order: …\" why it does not matter")
			}
		}
	}
	return true
}

// exact functions of package math give the same bits everywhere.
var exact = map[string]bool{
	"Abs": true, "Floor": true, "Ceil": true, "Trunc": true, "Sqrt": true, "Max": true, "Min": true, "IsNaN": true, "IsInf": true, "Inf": true, "NaN": true,
	"Float64bits": true, "Float64frombits": true, "Frexp": true, "Ldexp": true, "RoundToEven": true, "Signbit": true, "Copysign": true, "MaxInt32": true, "MaxInt64": true, "MaxInt": true, "MaxFloat64": true, "Modf": true,
	"MaxUint32": true, "MinInt64": true, "SmallestNonzeroFloat64": true,
}

func (c *checker) numeric(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if c.fromPackage(n, "math") && !exact[n.Sel.Name] {
			c.report(n.Pos(), "libm", "math.%s may differ in its last bit between machines; use internal/detmath", n.Sel.Name)
		}
	case *ast.BinaryExpr:
		if n.Op == token.MUL && c.isFloat(n) && !c.scales(n.X) && !c.scales(n.Y) && !c.wrapped(n) {
			c.report(n.Pos(), "fuse", "wrap the product: float64(x*y)")
		}
	}
	return true
}

func (c *checker) fromPackage(sel *ast.SelectorExpr, path string) bool {
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return false
	}
	name, ok := c.pkg.TypesInfo.Uses[id].(*types.PkgName)
	return ok && name.Imported().Path() == path
}

// isFloat reports whether a product is computed at run time in floating point.
func (c *checker) isFloat(n ast.Expr) bool {
	tv := c.pkg.TypesInfo.Types[n]
	if tv.Value != nil || tv.Type == nil {
		return false
	}
	b, ok := tv.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsFloat != 0
}

// scales reports whether an operand is a constant power of two: such a
// product is exact, fused or not.
func (c *checker) scales(n ast.Expr) bool {
	v := c.pkg.TypesInfo.Types[n].Value
	if v == nil {
		return false
	}
	f, _ := constant.Float64Val(constant.ToFloat(v))
	frac, _ := math.Frexp(math.Abs(f))
	return frac == 0.5
}

// wrapped reports whether the product, or the product it is a factor of,
// stands directly in a conversion.
func (c *checker) wrapped(n ast.Expr) bool {
	path, _ := astutil.PathEnclosingInterval(c.file, n.Pos(), n.End())
	for i, at := range path {
		if at != n {
			continue
		}
		for _, up := range path[i+1:] {
			switch up := up.(type) {
			case *ast.ParenExpr:
				continue
			case *ast.BinaryExpr:
				if up.Op == token.MUL {
					continue
				}
			case *ast.CallExpr:
				return c.pkg.TypesInfo.Types[up.Fun].IsType()
			}
			return false
		}
	}
	return false
}
