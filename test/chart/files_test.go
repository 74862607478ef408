package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// read returns the files below dir whose names begin with prefix, by name. There must be one.
func read(t *testing.T, dir, prefix string) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasPrefix(entry.Name(), prefix) {
			return err
		}
		text, err := os.ReadFile(path)
		texts[entry.Name()] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(texts) == 0 {
		t.Fatalf("no file of %s begins with %q", dir, prefix)
	}
	return texts
}
