//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Bounds of what a hostile pod may cost.
const (
	mostMemory  = 64 << 20 // bytes above idle
	mostRecords = 50e6     // bytes an hour, of all strangers
)

// markdown is what docs/threat-model.md shows. What is beyond a bound is said so.
func markdown(s *stage, results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d cores, %s; %d hostile processes at the lowest priority for %v or more, beside a driver's %d calls, of which %d on connections of their own.\n\n",
		runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version(), hostiles, s.least, s.calls+s.fresh, s.fresh)
	b.WriteString("| one hostile pod | memory above idle, at most | records of refusals, an hour | processor, cores | driver's calls that fail | driver's median, to alone | driver's p99, to alone | a stop; without |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %.1f MiB%s | %.1f MB%s | %.2f | %d of %d%s | %.1f | %.1f | %s; %s |\n", r.name,
			float64(r.memory)/(1<<20), over(r.memory > mostMemory), r.records/1e6, over(r.records > mostRecords), r.processor,
			r.failed, r.calls, over(r.failed > 0), ratio(r, 50), ratio(r, 99), round(r.stop), round(r.without))
	}
	return b.String()
}

func over(is bool) string {
	if is {
		return " (over the bound)"
	}
	return ""
}

func ratio(r result, percent int) float64 {
	return float64(r.beside.at(percent)) / float64(max(1, r.alone.at(percent)))
}

func round(d time.Duration) string { return d.Round(10 * time.Millisecond).String() }

// Lines between which the table stands in a document.
const (
	begins = "<!-- worst case -->\n"
	ends   = "<!-- end of worst case -->\n"
)

// write puts the table into a document that has a place for it, or makes it the file.
func write(file, table string) error {
	file = filepath.Clean(file)
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	text, err := placed(string(old), table)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return os.WriteFile(file, []byte(text), 0o644) //nolint:gosec // a document
}

func placed(document, table string) (string, error) {
	if document == "" {
		return table, nil
	}
	before, rest, ok := strings.Cut(document, begins)
	_, after, closed := strings.Cut(rest, ends)
	if !ok || !closed {
		return "", errors.New("has no place for the table")
	}
	return before + begins + "\n" + table + "\n" + ends + after, nil
}
