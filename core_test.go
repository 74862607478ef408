package pipeguard_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// readingOrder are the files of internal/core/reading.txt.
func readingOrder(t *testing.T) (files []string) {
	t.Helper()
	text, err := os.ReadFile("internal/core/reading.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			files = append(files, line)
		}
	}
	return files
}

// sources are the files of a package that are compiled into the proxy on Windows.
func sources(t *testing.T, dir string) (files []string) {
	t.Helper()
	p, ok := list(t, "windows")[module+"/"+dir]
	if !ok || len(p.GoFiles) == 0 {
		t.Fatalf("%s: no package", dir)
	}
	for _, f := range p.GoFiles {
		files = append(files, filepath.ToSlash(filepath.Join(dir, f)))
	}
	return files
}

// lines counts the lines of files, and those that hold code.
func lines(t *testing.T, files []string) (all, code int) {
	t.Helper()
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			all++
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
				code++
			}
		}
	}
	return all, code
}

// What decides can be read in an afternoon, as long as nothing is missing from the list and it does not grow.
func TestWhatMustBeReadIsListedAndShort(t *testing.T) {
	listed := readingOrder(t)
	var core, identification []string
	for _, dir := range []string{"internal/core/caller", "internal/core/access", "internal/core/gate"} {
		core = append(core, sources(t, dir)...)
	}
	identification = sources(t, "internal/proxy/peer")
	for _, f := range slices.Concat(core, identification, sources(t, "internal/core/safepath")) {
		if !slices.Contains(listed, f) {
			t.Errorf("%s is not in the list", f)
		}
	}
	for i, f := range listed {
		if slices.Contains(listed[:i], f) {
			t.Errorf("%s is in the list twice", f)
		}
	}
	if all, _ := lines(t, listed); all > 7_100 {
		t.Errorf("%d lines must be read: more than an afternoon", all)
	}
	for _, budget := range []struct {
		of    string
		files []string
		all   int // lines
		code  int // those that are neither empty nor comments
	}{
		{"caller, access and gate", core, 2_600, 2_000},
		{"the identification of a caller on Windows", identification, 900, 900},
	} {
		all, code := lines(t, budget.files)
		t.Logf("%s: %d lines, %d of them code", budget.of, all, code)
		if all > budget.all || code > budget.code {
			t.Errorf("%s: %d lines, %d of them code, and at most %d and %d are read in one sitting", budget.of, all, code, budget.all, budget.code)
		}
	}
}
