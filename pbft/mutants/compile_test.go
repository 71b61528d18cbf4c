package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"

	"golang.org/x/tools/go/packages"
)

// loaded are the packages that mutants edit, by folder, with the types of what
// they import.
func loaded(t *testing.T) map[string]*packages.Package {
	t.Helper()
	mode := packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes
	list, err := packages.Load(&packages.Config{Mode: mode, Dir: root(t)}, "./pbft", "./pbft/quorum", "./pbft/sim", "./bftpath")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*packages.Package{}
	for _, p := range list {
		if len(p.Errors) > 0 {
			t.Fatal(p.Errors)
		}
		out[filepath.Dir(p.CompiledGoFiles[0])] = p
	}
	return out
}

type imports map[string]*packages.Package

func (i imports) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return i[path].Types, nil
}

// TestEveryMutantCompiles checks types without building: a mutant that does
// not compile would show nothing.
func TestEveryMutantCompiles(t *testing.T) {
	pkgs := loaded(t)
	for _, m := range Mutants() {
		files, err := m.apply(root(t))
		if err != nil {
			t.Error(err)
			continue
		}
		dirs := map[string]bool{}
		for name := range files {
			dirs[filepath.Join(root(t), filepath.Dir(name))] = true
		}
		for dir := range dirs {
			if err := compile(pkgs[dir], root(t), files); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

func compile(pkg *packages.Package, root string, mutated map[string]string) error {
	set := token.NewFileSet()
	var syntax []*ast.File
	for _, at := range pkg.CompiledGoFiles {
		var src any
		if name, err := filepath.Rel(root, at); err == nil && mutated[filepath.ToSlash(name)] != "" {
			src = mutated[filepath.ToSlash(name)]
		}
		f, err := parser.ParseFile(set, at, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		syntax = append(syntax, f)
	}
	conf := types.Config{Importer: imports(pkg.Imports)}
	_, err := conf.Check(pkg.PkgPath, set, syntax, nil)
	return err
}
