//go:build unix

package publish

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPolling lets nodes wait for the next bundle, each on a connection of its own over TLS, and puts it:
//
//	go test ./internal/controller/publish -run '^$' -bench Polling -cpu 1 -benchtime 3x
//
// cpu-µs/poll is what the process computed for a request, the node's part included; KB/node is what it holds for a node that waits, both ends
// of the connection included. unwaited counts the nodes that were answered at once, since too many wait.
func BenchmarkPolling(b *testing.B) {
	for _, nodes := range []int{10, 1000, 5000} {
		b.Run(fmt.Sprintf("%d-nodes", nodes), func(b *testing.B) {
			server := NewServer([]string{"windows"})
			bundle := make([]byte, 10<<10)
			server.Put("windows", bundle)
			web := httptest.NewTLSServer(server)
			defer web.Close()
			before := inUse()
			clients := make([]*http.Client, nodes)
			for i := range clients {
				transport := web.Client().Transport.(*http.Transport).Clone()
				defer transport.CloseIdleConnections()
				clients[i] = &http.Client{Transport: transport}
				if status := poll(b, clients[i], web.URL, ""); status != http.StatusOK { // it connects
					b.Fatal(status)
				}
			}
			var took time.Duration
			var held, unwaited uint64
			for round := 0; b.Loop(); round++ {
				began := cpu(b)
				var atOnce atomic.Uint64
				var running sync.WaitGroup
				_, etag, _ := server.pools["windows"].now()
				for _, c := range clients {
					running.Go(func() {
						if poll(b, c, web.URL, etag) == http.StatusNotModified {
							atOnce.Add(1)
						}
					})
				}
				for len(server.waiting)+int(atOnce.Load()) < nodes { // #nosec G115 -- of nodes
					time.Sleep(time.Millisecond)
				}
				took += cpu(b) - began
				held = max(held, inUse()-before)
				began = cpu(b)
				bundle[0] = byte(round + 1)
				server.Put("windows", bundle)
				running.Wait()
				took += cpu(b) - began
				unwaited = atOnce.Load()
			}
			b.ReportMetric(float64(took.Microseconds())/float64(b.N*nodes), "cpu-µs/poll")
			b.ReportMetric(float64(held)/float64(nodes)/1e3, "KB/node")
			b.ReportMetric(float64(unwaited), "unwaited")
		})
	}
}

// poll asks for a bundle as a node does, and returns the status.
func poll(b *testing.B, c *http.Client, url, etag string) int {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url+"/bundles/windows", nil)
	if err != nil {
		b.Error(err)
		return 0
	}
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
		r.Header.Set("Prefer", "modes=snapshot;wait=60")
	}
	answer, err := c.Do(r)
	if err != nil {
		b.Error(err)
		return 0
	}
	defer answer.Body.Close() //nolint:errcheck // only read
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		b.Error(err)
	}
	return answer.StatusCode
}

// inUse is the memory of heap and stacks that is in use, in bytes.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// cpu is what the process has used so far, with the garbage collector's share.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
