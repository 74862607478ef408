//go:build unix

package admission

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/served"
	"github.com/pipeguard/pipeguard/test/pods"
)

// BenchmarkReview sends reviews of about 6 KB through the whole HTTP handler, from the bytes of the request to the bytes
// of the answer, with metrics and with audit records that are encoded and thrown away. Run it on one core:
//
//	go test ./internal/admission -run '^$' -bench Review -cpu 1
//
// cpu-ns/op is the figure to compare: it counts what the process computed, on a busy machine too.
func BenchmarkReview(b *testing.B) {
	for name, p := range benchPods(b) {
		b.Run(name, func(b *testing.B) {
			r := benchReviewer(b, Policies{Parameters: allowing()})
			measure(b, r, benchBody(b, p), name != "denied")
		})
	}
	for name, kind := range map[string]metav1.GroupVersionKind{
		"deployment-allowed": {Group: "apps", Version: "v1", Kind: "Deployment"}, "cronjob-allowed": {Group: "batch", Version: "v1", Kind: "CronJob"},
	} {
		b.Run(name, func(b *testing.B) {
			r := benchReviewer(b, Policies{Parameters: allowing()})
			measure(b, r, reviewBody(b, requestFor(b, inTemplate(b, kind, pods.Driver(b)), nil)), true)
		})
	}
	for name, c := range map[string]struct {
		path    string
		allowed bool
	}{"volume-no-hostpath": {"", true}, "volume-denied": {csiPipe, false}, "volume-linux": {"/mnt/disks/ssd0", true}} {
		b.Run(name, func(b *testing.B) {
			v := testVolume(c.path)
			if c.path == "" {
				v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h"}}
			}
			measure(b, benchReviewer(b, Policies{Parameters: allowing()}), reviewBody(b, requestFor(b, marshal(b, v), nil)), c.allowed)
		})
	}
}

// BenchmarkServed sends the review of a driver that is admitted, to a reviewer that does not know which nodes serve which pipes, and to one that has
// the reports of 1,000 nodes, of which all serve the driver's pipes, or none.
func BenchmarkServed(b *testing.B) {
	reports := func(pipes ...string) *served.Pipes {
		nodes := make([]v1alpha1.GuardedNode, 1000)
		for i := range nodes {
			nodes[i].Name, nodes[i].Pipes = fmt.Sprintf("win-%04d", i), pipes
		}
		return served.Collect(nodes, func(*v1alpha1.GuardedNode) bool { return true })
	}
	p := pods.Driver(b)
	var all []string
	for _, v := range p.Spec.Volumes {
		if v.HostPath != nil {
			all = append(all, strings.TrimPrefix(v.HostPath.Path, `\\.\pipe\`))
		}
	}
	for _, c := range []struct {
		name  string
		pipes ServedPipes
	}{{"unknown", nil}, {"by-all", reports(all...)}, {"by-none", reports("other")}} {
		b.Run(c.name, func(b *testing.B) {
			r := benchReviewer(b, Policies{Parameters: allowing()})
			r.o.Pipes = c.pipes
			measure(b, r, benchBody(b, p), true)
		})
	}
}

// BenchmarkGoverned sends the review of a driver whose pipes PipePolicies govern: the driver's own among others of other
// pipes, or every one of them the same six pipes.
func BenchmarkGoverned(b *testing.B) {
	driver := access.Subject{Name: "driver", Namespace: "kube-system", ServiceAccounts: []string{"csi-azuredisk-node-sa"}, Containers: []string{"azuredisk"}}
	governed := func(n int, pipe func(i int) string) Policies {
		p := Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{
			"driver": {Pipes: []string{"csi-proxy-*"}, Subjects: []access.Subject{driver}},
		}}
		for i := 1; i < n; i++ {
			p.PipePolicies[fmt.Sprintf("policy-%04d", i)] = PipePolicy{Pipes: []string{pipe(i)}, Subjects: []access.Subject{{Name: "other", Namespace: "team"}}}
		}
		return p
	}
	other := func(i int) string { return fmt.Sprint("other-", i, "-*") }
	same := func(int) string { return "csi-proxy-*" }
	for _, c := range []struct {
		name string
		n    int
		pipe func(i int) string
	}{
		{"by-1", 1, nil}, {"by-1-of-100", 100, other}, {"by-1-of-1000", 1000, other}, {"by-1-of-10000", 10_000, other},
		{"by-10", 10, same}, {"by-100", 100, same}, {"by-1000", 1000, same}, {"by-10000", 10_000, same},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := benchReviewer(b, governed(c.n, c.pipe))
			b.Run("allowed", func(b *testing.B) { measure(b, r, benchBody(b, pods.Driver(b)), true) })
			denied := pods.Driver(b)
			denied.Namespace = "shop"
			b.Run("denied", func(b *testing.B) { measure(b, r, benchBody(b, denied), false) })
		})
	}
}

// BenchmarkControllerRuntime sends the same reviews through controller-runtime's admission.Webhook around the same
// judgement, which is what its decoding would cost in the place of ServeHTTP.
func BenchmarkControllerRuntime(b *testing.B) {
	for name, p := range benchPods(b) {
		b.Run(name, func(b *testing.B) {
			r := benchReviewer(b, Policies{Parameters: allowing()})
			handler := ctrladmission.HandlerFunc(func(ctx context.Context, req ctrladmission.Request) ctrladmission.Response {
				res := r.Review(ctx, &req.AdmissionRequest)
				return ctrladmission.Response{AdmissionResponse: *res.Response(req.UID)}
			})
			measure(b, &ctrladmission.Webhook{Handler: handler}, benchBody(b, p), name != "denied")
		})
	}
}

// BenchmarkSteps measures the parts of the review of a driver that is admitted.
func BenchmarkSteps(b *testing.B) {
	p := pods.Driver(b)
	body := benchBody(b, p)
	r := benchReviewer(b, Policies{Parameters: allowing()})
	req := createRequest(b, p)
	obj, err := readObject(req.Object.Raw, podKind, plenty())
	if err != nil {
		b.Fatal(err)
	}
	scope := scopeIn(b, r)
	e, err := extract(scope, &obj, plenty())
	if err != nil {
		b.Fatal(err)
	}
	in, err := scope.input(req, &obj, &e, nil, clock, plenty())
	if err != nil {
		b.Fatal(err)
	}
	snapshot, _ := r.o.Engine.Active()
	engine, _ := r.o.Engine.(*policy.Engine)
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"envelope", func() error { _, err := decodeReview(body, plenty()); return err }},
		{"object", func() error { _, err := readObject(req.Object.Raw, podKind, plenty()); return err }},
		{"extract", func() error { _, err := extract(scope, &obj, plenty()); return err }},
		{"input", func() error { _, err := scope.input(req, &obj, &e, nil, clock, plenty()); return err }},
		{"value", func() error { _ = in.value(nil, everyField); return nil }},
		{"value-by-json", func() error { _, err := policy.ToValue(in); return err }},
		{"decide", func() error {
			_, err := r.o.Engine.DecideAbout(b.Context(), snapshot, nil, inputQuestion{in, nil})
			return err
		}},
		{"decide-anew", func() error {
			_, err := engine.DecideWith(b.Context(), snapshot, nil, in.value(nil, everyField))
			return err
		}},
		{"review", func() error { _ = r.Review(b.Context(), req); return nil }},
	} {
		b.Run(step.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := step.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchPods(b *testing.B) map[string]*corev1.Pod {
	denied := pods.Driver(b)
	denied.Namespace = "shop"
	return map[string]*corev1.Pod{"no-hostpath": pods.Plain(b), "driver-allowed": pods.Driver(b), "denied": denied}
}

// benchBody is a review of p, cut to about 6 KB by leaving out its managedFields if it has a driver's volumes.
func benchBody(b *testing.B, p *corev1.Pod) []byte {
	if len(p.Spec.Volumes) > 5 {
		p.ManagedFields = nil
	}
	body := reviewBody(b, createRequest(b, p))
	if len(body) < 5_000 || len(body) > 7_000 {
		b.Fatalf("the review has %d bytes, want about 6 KB", len(body))
	}
	return body
}

func benchReviewer(b *testing.B, p Policies) *Reviewer {
	engine, err := policy.New(policy.Options{Timeout: time.Minute, Remember: 100}) // a busy machine must not turn decisions into time-outs
	if err != nil {
		b.Fatal(err)
	}
	if _, err := engine.Activate(b.Context(), bound(b, p, fewTests(b))); err != nil {
		b.Fatal(err)
	}
	return newReviewer(b, allowing(), func(o *ReviewerOptions) {
		o.Engine, o.Audit, o.Now, o.NewID = engine, audit.NewStream(io.Discard), nil, nil
	})
}

func measure(b *testing.B, h http.Handler, body []byte, allowed bool) {
	reader := bytes.NewReader(body)
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "/", io.NopCloser(reader))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.ContentLength = int64(len(body))
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	times := make([]time.Duration, 0, 1<<20)
	before := cpuTime(b)
	b.ReportAllocs()
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		reader.Reset(body)
		w.body.Reset()
		start := time.Now()
		h.ServeHTTP(w, req)
		times = append(times, time.Since(start))
	}
	cpu := cpuTime(b) - before
	if w.status != http.StatusOK || !bytes.Contains(w.body.Bytes(), fmt.Appendf(nil, `"uid":"review-uid","allowed":%t`, allowed)) {
		b.Fatalf("answer %d %s", w.status, w.body.Bytes())
	}
	slices.Sort(times)
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(len(times)), "cpu-ns/op")
	b.ReportMetric(float64(times[len(times)/2].Nanoseconds()), "p50-ns")
	b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds()), "p99-ns")
}

// cpuTime is what the process has used so far, with the garbage collector's share. Unlike the time of the clock it
// says nothing about other processes of the machine.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
