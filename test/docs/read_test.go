package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// root is the checkout, as seen from this directory.
const root = "../.."

// documents returns the texts for users by their path in the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := read(t, filepath.Join(root, "docs"), ".md")
	for _, name := range []string{"README.md", "CHANGELOG.md", "charts/pipeguard/README.md"} {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
	}
	if len(texts) < 10 {
		t.Fatalf("only %d documents: the checks would hold of nothing", len(texts))
	}
	return texts
}

// read returns the files below dir whose names end in one of the suffixes, by their path in the repository.
func read(t *testing.T, dir string, suffixes ...string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		for _, suffix := range suffixes {
			if !strings.HasSuffix(path, suffix) {
				continue
			}
			text, err := os.ReadFile(path) //nolint:gosec // files of this repository
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			texts[filepath.ToSlash(name)] = string(text)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// sources returns the Go files of programs and packages, without tests.
func sources(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range dirs {
		for name, text := range read(t, filepath.Join(root, dir), ".go") {
			if !strings.HasSuffix(name, "_test.go") {
				all[name] = text
			}
		}
	}
	return all
}

// words collects what the first group of a pattern finds, and where.
func words(texts map[string]string, pattern *regexp.Regexp) map[string]string {
	found := map[string]string{}
	for name, text := range texts {
		for _, match := range pattern.FindAllStringSubmatch(text, -1) {
			found[match[1]] = name
		}
	}
	return found
}

// differ reports the words of a that b does not have.
func differ(t *testing.T, a, b map[string]string, message string) {
	t.Helper()
	if len(a) == 0 || len(b) == 0 {
		t.Fatalf("nothing to compare (%d and %d words): %s", len(a), len(b), message)
	}
	for word, where := range a {
		if _, ok := b[word]; !ok {
			t.Errorf("%s: %s %s", where, word, message)
		}
	}
}
