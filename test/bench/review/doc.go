//go:build linux

// Command review measures what a webhook's review costs: the CPU of its process for each, and how many it answers in a second, beside a webhook that
// decodes the uid and says yes, and, if it is there, beside Gatekeeper with one constraint in Rego. It starts them all, sends each the same reviews, as the API server
// sent them once, over TLS and HTTP/1.1, as API servers do, and prints a table in Markdown.
//
//	go run ./test/bench/review [-quick] [-only TEXT] [-webhook FILE] [-before FILE] [-gatekeeper FILE] [-turns N] [-table FILE] [-benchmarks FILE]
//
// "make dist/tools/gatekeeper" builds Gatekeeper.
//
// The servers take turns, so that whatever else the machine does meets all of them. The names and uids of pods differ from request to request, as those
// of a workload do; in the rows "never seen", so does the image. An answer that is not the right one ends the run.
package main
