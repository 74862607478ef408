package main

import (
	"fmt"

	"github.com/pipeguard/pipeguard/test/bench/benchfmt"
)

// benchmark appends a row to the file of lines for benchstat: the median and the processor time of a guarded call, and its calls a second of those of the bare server.
func (s *stage) benchmark(v variant, asked call, workers int, bare, guarded *samples) error {
	return benchfmt.Append(s.lines, "test/bench/node", []string{"Guarded", v.name, asked.name, fmt.Sprintf("callers=%d", workers)}, len(guarded.latencies),
		benchfmt.Figure{Value: float64(guarded.at(50)), Unit: "ns/op"}, benchfmt.Figure{Value: float64(guarded.cpu()), Unit: "cpu-ns/op"},
		benchfmt.Figure{Value: guarded.rate() / bare.rate(), Unit: "of-bare"})
}
