// go run go_symbols.go FOLDER COPY
// Whether each identifier of a folder's files means the same object in a copy under other names, to Go's
// own type checker. What that cannot resolve, as it lacks an import, counts as undecided. Prints counts in JSON: of files, identifiers, those
// that were renamed, those that are wrong or undecided, local variables and constants, and those of them that were
// renamed.
package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

var library = importer.ForCompiler(token.NewFileSet(), "source", nil)

// objects returns the identifiers of each file of a folder, in order, and what they mean.
func objects(root string) (map[string][]*ast.Ident, map[*ast.Ident]types.Object) {
	packages, set := map[string][]*ast.File{}, token.NewFileSet()
	found, means := map[string][]*ast.Ident{}, map[*ast.Ident]types.Object{}
	filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if !strings.HasSuffix(path, ".go") || entry.IsDir() {
			return err
		}
		file, failed := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if failed != nil {
			return nil
		}
		key := filepath.Dir(path) + " " + file.Name.Name
		packages[key] = append(packages[key], file)
		name, _ := filepath.Rel(root, path)
		ast.Inspect(file, func(node ast.Node) bool {
			if ident, is := node.(*ast.Ident); is {
				found[name] = append(found[name], ident)
			}
			return true
		})
		return nil
	})
	for _, files := range packages {
		info := types.Info{Defs: means, Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: library, Error: func(error) {}, FakeImportC: true}
		config.Check("p", set, files, &info)
		for ident, object := range info.Uses {
			means[ident] = object
		}
	}
	return found, means
}

func isLocal(object types.Object) bool {
	switch is := object.(type) {
	case *types.Var:
		if is.IsField() || is.Name() == "_" {
			return false
		}
	case *types.Const:
	default:
		return false
	}
	scope := object.Parent() // of methods of interfaces, parameters have none
	return object.Pkg() != nil && scope != object.Pkg().Scope() && scope != types.Universe
}

func main() {
	count := map[string]int{}
	ours, means := objects(os.Args[1])
	theirs, itsMeans := objects(os.Args[2])
	own, renamed := map[types.Object]bool{}, map[types.Object]bool{}
	there, back := map[types.Object]types.Object{}, map[types.Object]types.Object{}
	names := []string{}
	for name := range ours {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if count["files"]++; len(ours[name]) != len(theirs[name]) {
			panic(name + " has other identifiers")
		}
		for i, ident := range ours[name] {
			other := theirs[name][i]
			object, isKnown := means[ident]
			its, isItsKnown := itsMeans[other]
			isChanged := ident.Name != other.Name
			isSame := isKnown == isItsKnown && (object == nil) == (its == nil)
			if isChanged && object != nil {
				isSame = isSame && isLocal(object)
			} else if isChanged && !isKnown { // not the variable of a switch over types
				count["undecided"]++
			}
			if object != nil && its != nil {
				if before, is := there[object]; is {
					isSame = isSame && before == its
				} else if _, is := back[its]; is {
					isSame = false
				}
				there[object], back[its] = its, object
				if isLocal(object) {
					own[object] = true
					if isChanged {
						renamed[object] = true
					}
				}
			}
			count["identifiers"]++
			if isChanged {
				count["renamed"]++
			}
			if !isSame {
				count["wrong"]++
				fmt.Fprintf(os.Stderr, "%s: %s is %s\n", name, ident.Name, other.Name)
			}
		}
	}
	count["own"], count["found"] = len(own), len(renamed)
	told, _ := json.Marshal(count)
	fmt.Println(string(told))
}
