package scan

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestNewReportsEveryFault(t *testing.T) {
	_, err := New(Options{Interval: -1, Settle: -1, RetryAfter: -1})
	for _, want := range []string{"Config", "Judge", "Revision", "Interval", "Settle", "RetryAfter"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New = %v, want a word about %s", err, want)
		}
	}
	p := &marker{}
	if _, err := New(Options{Config: &rest.Config{Host: "://"}, Judge: p.Judge, Revision: p.Revision}); err == nil {
		t.Error("New takes an address that is none")
	}
}

// running is a Scanner that scans in a bubble, and the times at which passes ended.
type running struct {
	*Scanner
	*marker
	api   *apiServer
	reg   *prometheus.Registry
	start time.Time
	stop  func()

	mu     sync.Mutex // guards passes
	passes []time.Duration
}

func run(t *testing.T, change ...func(*running, *Options)) *running {
	r := &running{api: newAPIServer(t), reg: prometheus.NewRegistry(), start: time.Now()}
	r.Scanner, r.marker = newScanner(t, r.api, func(o *Options) {
		o.Now, o.Registerer = time.Now, r.reg
		o.Completed = func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.passes = append(r.passes, time.Since(r.start))
		}
		for _, c := range change {
			c(r, o)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Start(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Start = %v", err)
		}
	}
	return r
}

// ended returns how many passes have ended since it was last called, after d.
func (r *running) ended(d time.Duration) int {
	time.Sleep(d)
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.passes)
	r.passes = nil
	return n
}

func TestScansAtOnceAndThenFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		defer r.stop()
		if n := r.ended(0); n != 1 {
			t.Errorf("%d passes at once, want 1", n)
		}
		if n := r.ended(9 * time.Minute); n != 0 {
			t.Errorf("%d passes within nine minutes", n)
		}
		if n := r.ended(2*time.Minute + time.Second); n != 1 {
			t.Errorf("%d passes after eleven minutes, want 1", n)
		}
		if n := r.ended(10 * time.Hour); n < 54 || n > 60 {
			t.Errorf("%d passes in ten hours, want one every ten to eleven minutes", n)
		}
	})
}

func TestScansSoonAfterATriggerAndOnceForSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		defer r.stop()
		r.ended(time.Minute)
		r.activate("sha256:2")
		r.Trigger()
		time.Sleep(time.Second)
		r.activate("sha256:3")
		r.Trigger()
		r.Trigger()
		if n := r.ended(2 * time.Second); n != 1 {
			t.Errorf("%d passes, want 1", n)
		}
		if n := r.ended(8 * time.Minute); n != 0 {
			t.Errorf("%d more passes, want none", n)
		}
	})
}

func TestNeverTwoPassesAtOnceAndATriggerDuringOneIsServedAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		inside, most := 0, 0
		r := run(t, func(r *running, o *Options) {
			r.api.pod("default", "a", "")
			mark := o.Judge
			o.Judge = func(ctx context.Context, raw []byte) (Judged, error) {
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(10 * time.Second)
				mu.Lock()
				inside--
				mu.Unlock()
				return mark(ctx, raw)
			}
		})
		defer r.stop()
		time.Sleep(5 * time.Second)
		r.activate("sha256:2") // the judgement of the pass under way is by these: it ends and another begins
		r.Trigger()
		if n := r.ended(10 * time.Second); n != 0 {
			t.Errorf("%d passes ended by policies that no longer decide", n)
		}
		if n := r.ended(time.Minute); n == 0 {
			t.Error("no pass by the new policies")
		}
		if got := r.Scanner.violations.Load().revision; got != "sha256:2" {
			t.Errorf("the last pass is of %s", got)
		}
		if most != 1 {
			t.Errorf("%d objects were judged at once", most)
		}
	})
}

func TestReviewsHaveHalfOfTheTimeOfAPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAPIServer(t)
		for n := range 100 {
			a.pod("default", fmt.Sprint("p", n), "")
		}
		s, p := newScanner(t, a)
		p.judge = func(context.Context, []byte) (Judged, error) {
			time.Sleep(turn / 4)
			return Judged{}, nil
		}
		began := time.Now()
		complete(t, s)
		if took := time.Since(began); took != 50*turn {
			t.Errorf("25 turns and as many pauses took %v, want %v", took, 50*turn)
		}
	})
}

func TestNothingIsScannedWithoutPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, func(_ *running, o *Options) {
			revision := o.Revision
			o.Revision = func() string { return strings.TrimPrefix(revision(), "sha256:1") }
		})
		defer r.stop()
		if n := r.ended(time.Hour); n != 0 || len(r.api.asked()) > 0 {
			t.Errorf("%d passes without policies", n)
		}
		r.activate("sha256:2") // and nobody says so
		if n := r.ended(time.Minute); n != 1 {
			t.Errorf("%d passes once there are policies, want 1", n)
		}
	})
}

func TestIncompletePassIsFollowedByAnotherSoonerEachTimeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, func(r *running, _ *Options) {
			r.api.fault = answering("/jobs", -1, 403, metav1.StatusReasonForbidden)
		})
		defer r.stop()
		passes := func(d time.Duration) (n int) {
			time.Sleep(d)
			synctest.Wait()
			for _, request := range r.api.asked() {
				if strings.HasSuffix(request, "/jobs") {
					n++
				}
			}
			return n
		}
		// At 0, 1, 3, 7 and 15 min, and then every ten.
		for i, want := range []int{1, 1, 1, 1, 1, 1, 1} {
			if n := passes([]time.Duration{0, 61e9, 120e9, 240e9, 480e9, 600e9, 600e9}[i]); n != want {
				t.Errorf("step %d: %d passes, want %d", i, n, want)
			}
		}
		if n := r.ended(0); n != 0 {
			t.Errorf("%d passes were complete", n)
		}
		if got := gather(t, r.reg)["pipeguard_scan_last_completed_timestamp_seconds"]; got != 0 {
			t.Errorf("last completed at %v", got)
		}
	})
}

func TestScansWhenAPermissionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(3 * time.Minute)
		r := run(t, func(_ *running, o *Options) {
			o.NextChange = func(after time.Time) (time.Time, bool) { return end, after.Before(end) }
		})
		defer r.stop()
		r.ended(2 * time.Minute)
		if n := r.ended(time.Minute + 2*time.Second); n != 1 {
			t.Errorf("%d passes after the end, want 1", n)
		}
		if n := r.ended(5 * time.Minute); n != 0 {
			t.Errorf("%d more passes", n)
		}
	})
}

// Standard reports that cannot be written change nothing of when a pass is due.
func TestFailingStandardReportsDelayNoPassAndCauseNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := time.Now().Add(3*time.Minute + 30*time.Second)
		r := run(t, func(r *running, o *Options) {
			r.api.pod("default", "a", "deny.PG001")
			r.api.fault = answering("/apis/openreports.io/", -1, 403, metav1.StatusReasonForbidden)
			o.Standard = OpenReports
			o.NextChange = func(after time.Time) (time.Time, bool) { return end, after.Before(end) }
		})
		defer r.stop()
		for _, step := range []struct {
			after time.Duration
			want  int
			what  string
		}{
			{0, 1, "at once"}, {3 * time.Minute, 0, "until a permission ends"}, {32 * time.Second, 1, "when it has ended"},
			{9 * time.Minute, 0, "within the interval"}, {2 * time.Minute, 1, "after it"},
		} {
			if n := r.ended(step.after); n != step.want {
				t.Errorf("%d passes %s, want %d", n, step.what, step.want)
			}
			if gather(t, r.reg)["pipeguard_standard_reports state=failing"] != 1 {
				t.Errorf("%s: the reports do not fail", step.what)
			}
		}
	})
}

func TestMetricsExistWhileTheScannerRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		r.ended(time.Second)
		if got := len(gather(t, r.reg)); got == 0 {
			t.Error("no metrics while it runs")
		}
		// A second one with the same registry does not start, and does not take the metrics of the first away.
		second, _ := newScanner(t, r.api, func(o *Options) { o.Registerer = r.reg })
		if err := second.Start(t.Context()); err == nil {
			t.Error("two scanners share metrics")
		}
		if got := len(gather(t, r.reg)); got == 0 {
			t.Error("the metrics are gone")
		}
		r.stop()
		if got := gather(t, r.reg); len(got) > 0 {
			t.Errorf("metrics after the end: %v", got)
		}
	})
}

func TestEachTermOfTheLeaderScansAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t)
		if n := r.ended(time.Minute); n != 1 {
			t.Fatalf("%d passes", n)
		}
		r.stop()
		if _, known := r.Violations("any"); known {
			t.Error("what was found is told after the term")
		}
		if families, err := r.reg.Gather(); err != nil || len(families) != 0 {
			t.Errorf("series after the term: %v, %v", families, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Start(ctx) }()
		if n := r.ended(time.Minute); n != 1 {
			t.Errorf("%d passes in the next term", n)
		}
		if _, known := r.Violations("any"); !known {
			t.Error("what was found is not told")
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
