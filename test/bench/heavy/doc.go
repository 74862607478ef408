// Command heavy measures the memory of a webhook that is flooded with reviews which take much more than their bodies. It starts the real
// program without a cluster, lets clients of four loopback addresses post one review without pause, another one small reviews beside them, and
// prints a table in Markdown. It fails if the program takes more memory than the chart gives it.
//
//	go run ./test/bench/heavy
package main
