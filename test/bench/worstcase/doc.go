//go:build linux

// Command worstcase measures the worst that one hostile pod can do to the node proxy: what the proxy then holds in memory, uses of a
// processor and writes of records, how an allowed driver fares beside it, and how long a stop takes.
//
//	go run ./test/bench/worstcase [-quick] [-proxy FILE] [-table FILE]
//
// The proxy is the real program over sockets. The hostile pod is eight processes of a program that no rule names, at the lowest
// priority, since the processor's time that they take is not the proxy's; the driver is this process. With -table FILE the table replaces
// what stands between the lines "<!-- worst case -->" and "<!-- end of worst case -->" of a file, or is the file if there are none.
package main
