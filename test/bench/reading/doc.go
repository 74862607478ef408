//go:build linux

// Command reading measures what the commands that read an audit log cost: time, processor time and the most memory of "pipeguard audit search", tail, hunt, stats
// and report, each of which must print the same as that of another version, if one is given. It prints a table in Markdown.
//
//	PIPEGUARD_LONG_LOG=BYTES PIPEGUARD_LONG_DIR=DIR go test -timeout 60m -run LongLogTakes ./test/audit    # once: the log
//	go run ./test/bench/reading -log DIR [-pipeguard FILE] [-before FILE] [-turns N] [-only TEXT] [-benchmarks FILE]
//
// The versions take turns, so that whatever else the machine does meets both.
package main
