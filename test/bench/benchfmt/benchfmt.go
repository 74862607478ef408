// Package benchfmt writes measurements of whole programs as lines that go test -bench would print, so that benchstat compares them.
package benchfmt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Figure is one measured value and its unit, such as "ns/op".
type Figure struct {
	Value float64
	Unit  string
}

// Append adds a line to a file: of a benchmark of pkg, whose name has the parts joined by "/", over n operations. An empty file name means that no line is wanted.
// See https://go.dev/design/14313-benchmark-format.
func Append(file, pkg string, parts []string, n int, figures ...Figure) (err error) {
	if file == "" {
		return nil
	}
	out, err := os.OpenFile(filepath.Clean(file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	line := fmt.Sprintf("pkg: %s\nBenchmark%s %d", pkg, strings.NewReplacer(" ", "_", ",", "").Replace(strings.Join(parts, "/")), n)
	for _, f := range figures {
		line += fmt.Sprintf(" %.6g %s", f.Value, f.Unit)
	}
	_, err = fmt.Fprintln(out, line)
	return err
}
