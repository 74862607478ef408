package pipeguard_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// metricName is a name of a series of ours in a Go source file.
var metricName = regexp.MustCompile(`"(pipeguard_[a-z0-9_]+)"`)

func TestEveryMetricIsInTheDocumentation(t *testing.T) {
	var docs strings.Builder
	names := map[string]string{}
	each := func(root, suffix string, look func(path, text string)) {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, suffix) {
				return err
			}
			text, err := os.ReadFile(path) //nolint:gosec // of the module
			if err == nil {
				look(path, string(text))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	each("docs", ".md", func(_, text string) { docs.WriteString(text) })
	for _, root := range []string{"cmd", "internal"} {
		each(root, ".go", func(path, text string) {
			if strings.HasSuffix(path, "_test.go") {
				return
			}
			for _, match := range metricName.FindAllStringSubmatch(text, -1) {
				names[match[1]] = path
			}
		})
	}
	if len(names) < 80 {
		t.Fatalf("only %d metrics were found: the rule would hold of nothing", len(names))
	}
	for name, path := range names {
		if !regexp.MustCompile(name + `\b`).MatchString(docs.String()) {
			t.Errorf("%s (%s) is in no document", name, path)
		}
	}
}
