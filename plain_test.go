package pipeguard_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What test/linux.sh runs without the race detector alone starts no goroutine, and is there.
func TestWhatRunsWithoutTheRaceDetectorNeedsNone(t *testing.T) {
	script, err := os.ReadFile("test/linux.sh")
	if err != nil {
		t.Fatal(err)
	}
	plain := regexp.MustCompile(`(?ms)^plain=\([^\n]*\n(.*?)^\)`).FindSubmatch(script)
	if plain == nil {
		t.Fatal("there is no list of packages")
	}
	for _, name := range strings.Fields(string(plain[1])) {
		dir, isTree := strings.CutSuffix(name, "/...")
		files := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && !isTree && filepath.Clean(path) != filepath.Clean(dir):
				return fs.SkipDir
			case !strings.HasSuffix(path, ".go"):
				return nil
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				call, isCall := n.(*ast.CallExpr)
				if isCall {
					selector, ok := call.Fun.(*ast.SelectorExpr)
					isCall = ok && (selector.Sel.Name == "Go" || selector.Sel.Name == "Parallel")
				}
				if _, isGo := n.(*ast.GoStmt); isGo || isCall {
					t.Errorf("%s starts a goroutine: the race detector belongs to its tests", path)
				}
				return true
			})
			return nil
		})
		if err != nil || files == 0 {
			t.Errorf("%s: %d files, %v", name, files, err)
		}
	}
	where := map[string]int{}
	for _, dir := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				where[string(found[1])]++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	alone, err := os.ReadFile("test/alone.txt")
	if err != nil || len(alone) == 0 {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(alone)) {
		if where[name] != 1 {
			t.Errorf("%d tests have the name %s", where[name], name)
		}
	}
}
