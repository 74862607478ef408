package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/tlog"
)

// BenchmarkVerify reads records of 600 bytes; the target is 40,000 a second on one core.
func BenchmarkVerify(b *testing.B) {
	const records = 100_000
	dir := b.TempDir()
	f, err := os.Create(filepath.Join(dir, "audit-00000000000000000001-00000000-0000-4000-8000-000000000000.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	pad := strings.Repeat("x", 450)
	var prev tlog.Hash
	text := make([]byte, 0, 64<<20)
	for seq := 1; seq <= records; seq++ {
		start := len(text)
		kind, stage := "request", "ResponseComplete"
		if seq == 1 {
			kind, stage = "log", "LogOpen"
		}
		text = fmt.Appendf(text, `{"v":1,"seq":%d,"type":"%s","stage":"%s","id":"%s","prev":"%s"}`, seq, kind, stage, pad, prev)
		prev = Leaf(text[start:])
		text = append(text, '\n')
	}
	if _, err := f.Write(text); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		if r, err := Verify(context.Background(), VerifyOptions{Dir: dir}); err != nil || r.Records != records {
			b.Fatal(r, err)
		}
	}
	runtime.ReadMemStats(&after)
	b.ReportMetric(records*float64(b.N)/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/float64(b.N)/records, "B/record")
}

// BenchmarkAppend is what evidence costs the writer for each record.
func BenchmarkAppend(b *testing.B) {
	m := newLog(b, Options{Sinks: []Sink{&stuck{}}})
	m.begin(0)
	m.checkpoint()
	b.ReportAllocs()
	for b.Loop() {
		m.log.Append(m.prev)
	}
}
