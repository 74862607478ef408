package main

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
)

// A process that may open no pipe must not use up what pipes need by connecting to the metrics.
func TestConnectionsToTheMetricsAreFew(t *testing.T) {
	var now, most, served atomic.Int64
	var once sync.Once
	full, release := make(chan struct{}), make(chan struct{})
	opened := make(chan string, 1)
	stop, err := serveHTTP("127.0.0.1:0", func(mux *http.ServeMux) {
		mux.HandleFunc("GET /wait", func(http.ResponseWriter, *http.Request) {
			n := now.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			if n == maxHTTPConnections {
				once.Do(func() { close(full) })
			}
			<-release
			now.Add(-1)
			served.Add(1)
		})
	}, nil, func(address string) { opened <- address })
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + <-opened + "/wait"
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const asked = 3 * maxHTTPConnections
	var all sync.WaitGroup
	for range asked {
		all.Go(func() {
			response, err := client.Get(url)
			if err != nil {
				t.Error(err)
				return
			}
			_ = response.Body.Close()
		})
	}
	<-full
	close(release)
	all.Wait()
	if most.Load() > maxHTTPConnections || served.Load() != asked {
		t.Errorf("%d were served at one time, %d in all", most.Load(), served.Load())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Clients that have asked once and stay connected must not keep probes and Prometheus out.
func TestClientsThatStayConnectedKeepNobodyFromTheMetrics(t *testing.T) {
	opened := make(chan string, 1)
	stop, err := serveHTTP("127.0.0.1:0", func(mux *http.ServeMux) {
		mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	}, nil, func(address string) { opened <- address })
	if err != nil {
		t.Fatal(err)
	}
	address := <-opened
	for range 2 * maxHTTPConnections {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close() //nolint:errcheck // the test is over
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: node\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%v, %v", response, err)
		}
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
