//go:build unix

package scan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/test/pods"
)

// BenchmarkPass measures whole passes over a cluster's pods, with the policies of the webhook:
//
//	go test ./internal/controller/scan -run '^$' -bench Pass -cpu 1 -benchtime 3x
//
// cpu-µs/object is what the process computed for an object, garbage collection included; x-judged compares that with
// judging the same objects alone, in turns with the passes. heap-MB is the most that a pass added to the heap, garbage included.
func BenchmarkPass(b *testing.B) {
	for _, c := range []struct {
		name           string
		plain, drivers int
	}{
		{"1000-pods", 1000, 0}, {"10000-pods", 10_000, 0}, {"100000-pods", 100_000, 0}, {"500-drivers", 0, 500}, {"10000-pods-and-500-drivers", 10_000, 500},
	} {
		b.Run(c.name, func(b *testing.B) {
			driver := pods.RunningDriver(b)
			allowed := admission.DefaultParameters()
			allowed.AllowedNamespaces = map[string]admission.Subjects{driver.Namespace: {ServiceAccounts: []string{driver.Spec.ServiceAccountName}}}
			engine := engineOf(b, allowed)
			reviewer, err := admission.NewReviewer(admission.ReviewerOptions{Engine: engine})
			if err != nil {
				b.Fatal(err)
			}
			judge := Reviews(reviewer, engine)
			active, _ := engine.Active()
			lists := newPodLists(numbered(b, pods.Running(b), c.plain), numbered(b, driver, c.drivers))
			s, _ := newScanner(b, nil, func(o *Options) { o.Config, o.Judge, o.Revision = lists.config(), judge, active.Revision })
			var alone, passes time.Duration
			var heap uint64
			for b.Loop() {
				began := cpu(b)
				for _, raw := range lists.objects {
					if j, err := judge(b.Context(), raw); err != nil || j.Failure != "" || len(j.Findings) > 0 {
						b.Fatalf("judged as %+v, %v", j, err)
					}
				}
				between := cpu(b)
				heap = max(heap, mostHeap(func() { complete(b, s) }))
				alone, passes = alone+between-began, passes+cpu(b)-between
			}
			b.ReportMetric(float64(passes.Microseconds())/float64(b.N*len(lists.objects)), "cpu-µs/object")
			b.ReportMetric(float64(heap)/1e6, "heap-MB")
			b.ReportMetric(passes.Seconds()/float64(b.N), "cpu-s/pass")
			b.ReportMetric(float64(passes)/float64(alone), "x-judged")
			b.ReportMetric(float64(lists.bytes)/float64(len(lists.objects)), "B/object")
		})
	}
}

// mostHeap returns by how much the heap grew at most while f ran, in bytes, of what is looked at every few milliseconds.
func mostHeap(f func()) (most uint64) {
	runtime.GC()
	heap := func() uint64 {
		s := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		runtimemetrics.Read(s)
		return s[0].Value.Uint64()
	}
	before, done, looked := heap(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(looked)
		every := time.NewTicker(5 * time.Millisecond)
		defer every.Stop()
		for {
			if now := heap(); now > before {
				most = max(most, now-before)
			}
			select {
			case <-done:
				return
			case <-every.C:
			}
		}
	}()
	f()
	close(done)
	<-looked
	return most
}

// numbered returns n copies of a pod, encoded as objects of a list. Those of one page have names of their own, and all pages are the same one: the
// memory of the benchmark itself does not grow with n, and the garbage collector runs as often as in a webhook.
func numbered(b *testing.B, p *corev1.Pod, n int) (objects [][]byte) {
	b.Helper()
	p.Kind, p.APIVersion = "Pod", "v1"
	for i := range n {
		if i >= defaultPageSize {
			objects = append(objects, objects[i-defaultPageSize])
			continue
		}
		p.Name = p.GenerateName + strconv.Itoa(i)
		raw, err := json.Marshal(p)
		if err != nil {
			b.Fatal(err)
		}
		objects = append(objects, raw)
	}
	return objects
}

// podLists answers lists as an API server whose only objects are pods. It has every page ready, so that its answers cost
// the process next to nothing.
type podLists struct {
	objects [][]byte
	bytes   int
	pages   []string // items of each
}

func newPodLists(kinds ...[][]byte) *podLists {
	l := &podLists{objects: slices.Concat(kinds...)}
	made := map[*byte]string{} // by the first object
	for page := range slices.Chunk(l.objects, defaultPageSize) {
		text, ok := made[&page[0][0]]
		if !ok {
			text = string(bytes.Join(page, []byte(",")))
			made[&page[0][0]] = text
		}
		l.pages = append(l.pages, text)
	}
	for _, raw := range l.objects {
		l.bytes += len(raw)
	}
	return l
}

// page is the one that a token of continuation names.
func (l *podLists) page(token string) io.Reader {
	i, _ := strconv.Atoi(token) // none is the first
	next := ""
	if i+1 < len(l.pages) {
		next = strconv.Itoa(i + 1)
	}
	head := fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[`, next)
	return io.MultiReader(strings.NewReader(head), strings.NewReader(l.pages[i]), strings.NewReader("]}"))
}

func (l *podLists) config() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		var text io.Reader = strings.NewReader(`{"kind":"List","apiVersion":"v1","items":[]}`)
		if r.URL.Path == judgedKinds()[0].path("") {
			text = l.page(r.URL.Query().Get("continue"))
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(text), Request: r}, nil
	})}
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
