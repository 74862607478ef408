//go:build unix

package scan

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
// judging the same objects alone, in turns with the passes.
func BenchmarkPass(b *testing.B) {
	for _, c := range []struct {
		name           string
		plain, drivers int
	}{
		{"10000-pods", 10_000, 0}, {"500-drivers", 0, 500}, {"10000-pods-and-500-drivers", 10_000, 500},
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
			lists := newPodLists(b, numbered(b, pods.Running(b), c.plain), numbered(b, driver, c.drivers))
			s, _ := newScanner(b, nil, func(o *Options) { o.Config, o.Judge, o.Revision = lists.config(), judge, active.Revision })
			var alone, passes time.Duration
			for b.Loop() {
				began := cpu(b)
				for _, raw := range lists.objects {
					if j, err := judge(b.Context(), raw); err != nil || j.Failure != "" || len(j.Findings) > 0 {
						b.Fatalf("judged as %+v, %v", j, err)
					}
				}
				between := cpu(b)
				complete(b, s)
				alone, passes = alone+between-began, passes+cpu(b)-between
			}
			b.ReportMetric(float64(passes.Microseconds())/float64(b.N*len(lists.objects)), "cpu-µs/object")
			b.ReportMetric(passes.Seconds()/float64(b.N), "cpu-s/pass")
			b.ReportMetric(float64(passes)/float64(alone), "x-judged")
			b.ReportMetric(float64(lists.bytes)/float64(len(lists.objects)), "B/object")
		})
	}
}

// numbered encodes n copies of a pod, each with a name of its own, as objects of a list.
func numbered(b *testing.B, p *corev1.Pod, n int) (objects [][]byte) {
	b.Helper()
	p.Kind, p.APIVersion = "Pod", "v1"
	for i := range n {
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
	pages   []string
}

func newPodLists(b *testing.B, kinds ...[][]byte) *podLists {
	b.Helper()
	l := &podLists{}
	var page strings.Builder
	for _, objects := range kinds {
		l.objects = append(l.objects, objects...)
	}
	for i, raw := range l.objects {
		if page.Len() > 0 {
			page.WriteByte(',')
		}
		page.Write(raw)
		l.bytes += len(raw)
		if end := i + 1; end%defaultPageSize == 0 || end == len(l.objects) {
			next := ""
			if end < len(l.objects) {
				next = strconv.Itoa(len(l.pages) + 1)
			}
			l.pages = append(l.pages, fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"continue":%q},"items":[%s]}`, next, page.String()))
			page.Reset()
		}
	}
	return l
}

func (l *podLists) config() *rest.Config {
	return &rest.Config{Host: "http://api", Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		text := `{"kind":"List","apiVersion":"v1","items":[]}`
		if r.URL.Path == judgedKinds()[0].path("") {
			page, _ := strconv.Atoi(r.URL.Query().Get("continue")) // none is the first
			text = l.pages[page]
		}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
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
