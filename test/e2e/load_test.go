//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/routes"
)

// kind is a kind of object that a load creates again and again.
type kind string

const (
	evilPods     kind = "evil pods"     // never to be admitted
	driverPods   kind = "driver pods"   // may fail while the webhook is down, never be refused
	ordinaryPods kind = "ordinary pods" // never to fail
	linuxPods    kind = "hostPath pods" // with a plain Linux path: never to fail
	configMaps   kind = "ConfigMaps"    // never to fail
	openings     kind = "openings"      // every spelling of a pipe by every route, never to be admitted; none is stored
)

// pauses bound the load: the machine has two cores, and the cluster must do its work beside it.
var pauses = map[kind]time.Duration{
	evilPods: 10 * time.Millisecond, driverPods: 50 * time.Millisecond, ordinaryPods: 50 * time.Millisecond,
	linuxPods: 100 * time.Millisecond, configMaps: 100 * time.Millisecond, openings: 20 * time.Millisecond,
}

// tally counts what became of the requests of one kind.
type tally struct {
	counts  map[verdict]int
	longest time.Duration
	last    verdict
	outage  time.Duration // the longest time from a failure to the next admission
	failing time.Time     // since when there was none; zero after one
	lost    string        // why the first request found no webhook
	wrong   []string      // what must not happen, the first few
}

// load creates objects of every kind in one namespace until it is stopped. What was admitted it deletes at once.
type load struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex // guards tallies
	tallies map[kind]*tally
}

// loadNamespace is where a load creates what is not a driver's.
const loadNamespace = "load"

// Kinds that must never fail, and these with those that the webhook judges.
var (
	undisturbed = []kind{ordinaryPods, linuxPods, configMaps}
	everything  = []kind{evilPods, driverPods, ordinaryPods, linuxPods, configMaps}
)

// startLoad starts a load of some kinds, which ends with the test at the latest. Driver pods need a driver that is allowed.
func startLoad(t *testing.T, kinds ...kind) *load {
	t.Helper()
	namespace(t, loadNamespace)
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, tallies: map[kind]*tally{}}
	makers := map[kind]func(name string) client.Object{
		evilPods: func(name string) client.Object {
			return pod(loadNamespace, name, mounts(diskPipe), onWindows, unscheduled)
		},
		ordinaryPods: func(name string) client.Object { return pod(loadNamespace, name, unscheduled) },
		linuxPods: func(name string) client.Object {
			return pod(loadNamespace, name, mounts("/var/lib/cni"), mounts("/run/xtables.lock"), unscheduled)
		},
		configMaps: func(name string) client.Object {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: loadNamespace, Name: name}}
		},
		driverPods: func(name string) client.Object { return driverPod(name, unscheduled) },
	}
	if slices.Contains(kinds, openings) {
		all := routes.Openings(t, loadNamespace)
		makers[openings] = func(name string) client.Object {
			o := all[rand.IntN(len(all))].Object.DeepCopyObject().(client.Object)
			o.SetName(name)
			return o
		}
	}
	for _, k := range kinds {
		l.tallies[k] = &tally{counts: map[verdict]int{}}
	}
	for _, k := range kinds {
		l.done.Go(func() { l.create(ctx, k, makers[k]) })
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// create creates objects of one kind, one after the other.
func (l *load) create(ctx context.Context, k kind, object func(string) client.Object) {
	for i := 0; ; i++ {
		o := object(fmt.Sprintf("%s-%d", strings.ReplaceAll(strings.ToLower(string(k)), " ", "-"), i))
		began := time.Now()
		var options []client.CreateOption
		if k == openings {
			options = append(options, client.DryRunAll)
		}
		err := shared.Client.Create(ctx, o, options...)
		if ctx.Err() != nil {
			if k != evilPods && k != openings { // the answer is lost, but perhaps not the object; an evil one is left for judge to find
				_ = shared.Client.Delete(context.WithoutCancel(ctx), o, client.GracePeriodSeconds(0))
			}
			return
		}
		l.count(k, verdictOf(err), time.Since(began), err)
		if err == nil && k != evilPods && k != openings {
			// A failure shows in the next creation or in the list of what is left.
			_ = shared.Client.Delete(context.WithoutCancel(ctx), o, client.GracePeriodSeconds(0))
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pauses[k]):
		}
	}
}

// count notes an outcome, and whether it may happen to objects of the kind.
func (l *load) count(k kind, v verdict, took time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	tally := l.tallies[k]
	tally.counts[v]++
	tally.longest = max(tally.longest, took)
	tally.last = v
	if v == unreachable && tally.lost == "" {
		tally.lost = err.Error()
	}
	if v == admitted {
		tally.failing = time.Time{}
	} else if tally.failing.IsZero() {
		tally.failing = time.Now()
	}
	if !tally.failing.IsZero() {
		tally.outage = max(tally.outage, time.Since(tally.failing))
	}
	fine := v == admitted
	switch k {
	case openings:
		fine = v != admitted // one that nobody could store fails for that
	case evilPods:
		fine = v == refused || v == floored || v == unjudged || v == unreachable
	case driverPods:
		fine = v == admitted || v == unjudged || v == unreachable
	}
	if !fine && len(tally.wrong) < 3 {
		tally.wrong = append(tally.wrong, fmt.Sprintf("%s: %v", v, err))
	}
}

// recovered asks that the newest answer about a kind is the one that an enforcing webhook gives.
func (l *load) recovered(k kind, want verdict) func(context.Context) error {
	return func(context.Context) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if last := l.tallies[k].last; last != want {
			return fmt.Errorf("%s are %s, want %s", k, last, want)
		}
		return nil
	}
}

func (l *load) stop() {
	l.cancel()
	l.done.Wait()
}

// judge stops the load, prints what it counted, and fails the test for everything that must not happen.
func (l *load) judge(t *testing.T) {
	t.Helper()
	l.stop()
	for _, k := range slices.Sorted(maps.Keys(l.tallies)) {
		tally := l.tallies[k]
		t.Logf("%-14s %5d admitted %5d refused %5d by the floor %5d unjudged %5d unreachable %5d failed, the longest took %4d ms", k,
			tally.counts[admitted], tally.counts[refused], tally.counts[floored], tally.counts[unjudged], tally.counts[unreachable], tally.counts[failed], tally.longest.Milliseconds())
		for _, w := range tally.wrong {
			t.Errorf("%s: %s", k, w)
		}
	}
	// The answers are one witness, what is stored is the other.
	var pods corev1.PodList
	if err := shared.Client.List(context.Background(), &pods, client.InNamespace(loadNamespace)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if strings.HasPrefix(p.Name, "evil") {
			t.Errorf("%s exists", p.Name)
		}
	}
}
