//go:build unix

package segment

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// sample is a record as the proxy writes it.
func sample() *audit.Event {
	return &audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "RW7UZ275BXWT453VSXCFNR6NIK",
		Who: &audit.Who{Assurance: "pod", Process: &audit.WhoProcess{PID: 4711, Start: time.Now(), Exe: `C:\Program Files\driver\node.exe`}, User: &audit.WhoUser{SID: "S-1-5-18"},
			Pod: &audit.WhoPod{Namespace: "kube-system", Name: "csi-node-x7x2p", UID: "0b9c9d2e-8f5c-4f57-9a9a-4c9e1c1f2b10", ServiceAccount: "csi-node"}},
		What: &audit.What{
			Pipe: "csi-proxy-filesystem-v1", Group: "filesystem", Version: "v1", Method: "Mkdir", FullMethod: "/v1.Filesystem/Mkdir", Verb: "write",
			Params:  json.RawMessage(`{"path":"C:\\var\\lib\\kubelet\\plugins\\kubernetes.io\\csi\\x\\globalmount"}`),
			Targets: []audit.Target{{Kind: "path", Value: `C:\var\lib\kubelet\plugins\kubernetes.io\csi\x\globalmount`}},
		},
		Decision: &audit.Decision{Effect: audit.EffectAllow, Reason: "allowed by rule driver", Rule: "driver", Policy: &audit.Policy{Name: "acl", Revision: "sha256:0123456789abcdef"}, Mode: "Enforce"},
		Outcome:  &audit.Outcome{Result: audit.ResultOK, Code: "OK", LatencyUS: 1234},
		Corr:     &audit.Corr{Conn: "QPSXPHXQTT62LSQXIB7JZ522GH"}, Where: &audit.Where{Node: "node-1"},
	}
}

// flushRate is how many appends of one record this disk flushes in a second, and what each costs the processor.
func flushRate(b *testing.B, dir string) (rate, cpuMicros, p50Micros float64) {
	b.Helper()
	file, err := os.OpenFile(filepath.Join(dir, "plain"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	line := make([]byte, 1100)
	began, used, n := time.Now(), cpu(), 0
	var took []time.Duration
	for ; time.Since(began) < 300*time.Millisecond; n++ {
		start := time.Now()
		if _, err := file.Write(line); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	return float64(n) / time.Since(began).Seconds(), float64(cpu()-used) / float64(n) / 1000, median(took)
}

// median in microseconds.
func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2]) / 1000
}

func cpu() time.Duration {
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkAppend tells for each number of callers the durable records of a second, the plain flushes of a second on the same disk in the
// same run, and the processor time of a record, the kernel's part of writing and flushing included.
func BenchmarkAppend(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("callers=%d/nosync=%v", callers, noSync), func(b *testing.B) {
				dir := b.TempDir()
				flushes, flushCPU, flushP50 := flushRate(b, dir)
				w, err := Open(b.Context(), filepath.Join(dir, "audit"), Options{NoSync: noSync})
				if err != nil {
					b.Fatal(err)
				}
				defer w.Close()
				e := sample()
				todo := make(chan int, b.N)
				for i := range b.N {
					todo <- i
				}
				close(todo)
				b.ReportAllocs()
				b.ResetTimer()
				began, used := time.Now(), cpu()
				var running sync.WaitGroup
				took := make([]time.Duration, b.N)
				for range callers {
					running.Go(func() {
						for i := range todo {
							start := time.Now()
							if _, err := w.Append(context.Background(), e); err != nil {
								b.Error(err)
								return
							}
							took[i] = time.Since(start)
						}
					})
				}
				running.Wait()
				rate := float64(b.N) / time.Since(began).Seconds()
				b.ReportMetric(rate, "records/s")
				b.ReportMetric(flushes, "flushes/s")
				b.ReportMetric(median(took), "p50-us")
				b.ReportMetric(flushP50, "flush-p50-us")
				b.ReportMetric(flushCPU, "cpu-us/flush")
				b.ReportMetric(rate/flushes, "records/flush")
				b.ReportMetric(float64(w.Stats().Records)/float64(w.Stats().Flushes), "records/batch")
				each := float64(cpu()-used) / float64(b.N) / 1000
				b.ReportMetric(each, "cpu-us/op")
				if noSync {
					flushCPU = 0
				}
				perRecord := float64(w.Stats().Flushes) / float64(w.Stats().Records)
				b.ReportMetric(2*(each-flushCPU*perRecord), "beside-flush-us/call")
			})
		}
	}
}

// BenchmarkOpen starts behind a whole segment.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	w, err := Open(b.Context(), dir, Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	e := sample()
	for w.Stats().Bytes < 60<<20 {
		if _, err := w.Append(context.Background(), e); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(w.Stats().Records), "records")
	whileFree(w, func(l *log) { l.file.Sync() })
	name := current(w)
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	d, err := openDirectory(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	for b.Loop() {
		if f, err := read(d, Signed{}); err != nil || f.fault != "" || f.parts[0].name != name {
			b.Fatal(f, err)
		}
	}
}
