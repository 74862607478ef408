package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// benchmark appends a row to the file of lines as go test -bench prints them: the median and the processor time of a guarded call, and its calls a second of those
// of the bare server. See https://go.dev/design/14313-benchmark-format.
func (s *stage) benchmark(v variant, asked call, workers int, bare, guarded *samples) (err error) {
	if s.lines == "" {
		return nil
	}
	file, err := os.OpenFile(filepath.Clean(s.lines), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	name := strings.NewReplacer(" ", "_", ",", "").Replace(v.name)
	_, err = fmt.Fprintf(file, "pkg: test/bench/node\nBenchmarkGuarded/%s/%s/callers=%d %d %d ns/op %d cpu-ns/op %.4f of-bare\n",
		name, asked.name, workers, len(guarded.latencies), guarded.at(50).Nanoseconds(), guarded.cpu().Nanoseconds(), guarded.rate()/bare.rate())
	return err
}
