// Command node measures the guarded node API against a bare gRPC server that serves the same methods over the same
// in-memory host and the same kind of pipe: calls per second, latencies, memory and the time to start.
//
//	go run ./test/bench/node [-quick] [-only TEXT] [-proxy FILE] [-turns N] [-table FILE] [-benchmarks FILE]
//
// The two servers take turns of half a second each, so that whatever else the machine does meets both.
package main
