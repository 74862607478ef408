package controller

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// running is an Activator at work in a bubble of time.
type running struct {
	*Activator
	objects *memory
	engine  *counted
	told    []error // what Options.Attempted heard
	noBase  atomic.Bool
	params  atomic.Pointer[admission.Parameters] // nil for the defaults
	cancel  context.CancelFunc
	done    chan error
}

func run(t *testing.T, objects *memory) *running {
	t.Helper()
	r := &running{objects: objects, engine: newCounted(t), done: make(chan error, 1)}
	r.Activator = &Activator{
		objects: objects, engine: r.engine, assemble: assembleFiles, log: zap.NewNop(), now: time.Now, changed: make(chan struct{}, 1),
		base: func() (policy.Modules, admission.Parameters, error) {
			if r.noBase.Load() {
				return policy.Modules{}, admission.Parameters{}, errDisk
			}
			if p := r.params.Load(); p != nil {
				return base(), *p, nil
			}
			return base(), admission.DefaultParameters(), nil
		},
		attempted: func(_ policy.Snapshot, err error) { r.told = append(r.told, err) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	go func() { r.done <- r.Start(ctx) }()
	synctest.Wait()
	return r
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

// calm lets what was changed be taken over.
func calm() {
	time.Sleep(patience + quiet)
	synctest.Wait()
}

func (r *running) latest(t *testing.T) Outcome {
	t.Helper()
	o, ok := r.Latest()
	if !ok {
		t.Fatal("there was no attempt")
	}
	return o
}

func TestNothingIsActivatedBeforeTheObjectsAreKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := &memory{synced: make(chan struct{})}
		objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)}
		r := run(t, objects)
		r.Changed()
		time.Sleep(time.Hour)
		synctest.Wait()
		if _, ok := r.engine.Active(); ok || r.engine.attempts.Load() > 0 {
			t.Fatal("the base policies decide without the cluster's")
		}
		if o, ok := r.Latest(); ok {
			t.Fatalf("there is an outcome: %+v", o)
		}
		close(objects.synced)
		calm()
		want := map[ObjectKey]int64{{Kind: "PolicyModule", Name: "a", UID: "uid-a"}: 1}
		if diff := cmp.Diff(want, r.latest(t).Active); diff != "" {
			t.Error(diff)
		}
		r.stop(t)
	})
}

func TestAReplicaThatIsStoppedBeforeTheObjectsAreKnownEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &memory{synced: make(chan struct{})})
		r.stop(t)
	})
}

func TestABurstIsOneAttemptAndUnrestDelaysItNotForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, newMemory())
		if r.engine.attempts.Load() != 1 {
			t.Fatalf("%d attempts at the start", r.engine.attempts.Load())
		}
		for i := range 8 {
			r.objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", int64(i+1), goodRego)})
			time.Sleep(quiet / 2)
		}
		synctest.Wait()
		if r.engine.attempts.Load() != 1 {
			t.Fatalf("%d attempts while objects come", r.engine.attempts.Load()-1)
		}
		calm()
		if r.engine.attempts.Load() != 2 {
			t.Fatalf("%d attempts after a burst", r.engine.attempts.Load()-1)
		}
		for i := range 30 { // three seconds
			r.objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", int64(i+9), goodRego+"# "+time.Now().String())})
			time.Sleep(quiet / 2)
		}
		if r.engine.attempts.Load() < 3 {
			t.Fatal("objects that never rest are never taken over")
		}
		r.stop(t)
	})
}

func TestTheSameContentIsNotAttemptedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, goodRego), policyModule("b", 1, "package b\n\nx := 1\n")}
		r := run(t, objects)
		before := r.latest(t)
		wake := r.Subscribe()

		objects.set(nil, []v1alpha1.PolicyModule{policyModule("b", 1, "package b\n\nx := 1\n"), policyModule("a", 1, goodRego)}) // the cache has no order
		calm()
		objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", 3, goodRego), policyModule("b", 1, "package b\n\nx := 1\n")}) // changed and changed back
		calm()
		if r.engine.attempts.Load() != 1 || len(r.told) != 1 {
			t.Fatalf("%d attempts, %d told", r.engine.attempts.Load(), len(r.told))
		}
		after := r.latest(t)
		key := ObjectKey{Kind: "PolicyModule", Name: "a", UID: "uid-a"}
		if after.Active[key] != 3 || after.Generations[key] != 3 || after.Attempted != before.Attempted || after.Revision != before.Revision {
			t.Errorf("outcome %+v", after)
		}
		if before.Active[key] != 1 {
			t.Error("an outcome changed after it was published")
		}
		select {
		case <-wake:
		default:
			t.Error("nobody was told of the new generation")
		}
		r.stop(t)
	})
}

func TestWhatIsUnfitLeavesTheLastGoodDeciding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)}
		r := run(t, objects)
		good := r.latest(t)
		if good.Err != nil || good.Revision == "" {
			t.Fatalf("outcome %+v", good)
		}
		objects.set([]v1alpha1.PipePolicy{pipePolicy("p", 1)}, []v1alpha1.PolicyModule{policyModule("a", 2, brokenRego)})
		calm()
		bad := r.latest(t)
		if bad.Err == nil || bad.Revision != good.Revision || bad.Attempted == good.Attempted {
			t.Errorf("outcome %+v", bad)
		}
		if diff := cmp.Diff(good.Active, bad.Active); diff != "" {
			t.Errorf("what is active changed: %s", diff)
		}
		want := map[ObjectKey]int64{{Kind: "PolicyModule", Name: "a", UID: "uid-a"}: 2, {Kind: "PipePolicy", Name: "p", UID: "uid-p"}: 1}
		if diff := cmp.Diff(want, bad.Generations); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour) // what does not compile is not tried again and again
		if synctest.Wait(); r.engine.attempts.Load() != 2 {
			t.Errorf("%d attempts", r.engine.attempts.Load())
		}
		objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", 3, goodRego)}) // the way back
		calm()
		if again := r.latest(t); again.Err != nil || again.Revision != good.Revision || !maps.Equal(again.Active, again.Generations) {
			t.Errorf("outcome %+v", again)
		}
		r.stop(t)
	})
}

// What an object never was is no last good one: see ADR 0079.
func TestWhatWasReadWithoutItsNewFieldsIsTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)}
		wide := pipePolicy("p", 1, lasting("s"))
		wide.Spec.Admission = v1alpha1.AdmissionRules{Action: v1alpha1.ActionAudit, Requirement: v1alpha1.RequireSubjectOrPrivileged}
		wide.Spec.Node.Action = v1alpha1.NodeLogOnly
		objects.pipes = []v1alpha1.PipePolicy{wide, pipePolicy("q", 1)}
		r := run(t, objects)
		good := r.latest(t)
		narrower := *wide.DeepCopy()
		narrower.Unknown = "spec.zones"
		// What else is unfit does not keep it.
		objects.set([]v1alpha1.PipePolicy{narrower, pipePolicy("q", 2)}, []v1alpha1.PolicyModule{policyModule("a", 2, brokenRego)})
		calm()
		bad := r.latest(t)
		want := map[ObjectKey]int64{{Kind: "PolicyModule", Name: "a", UID: "uid-a"}: 1, {Kind: "PipePolicy", Name: "q", UID: "uid-q"}: 1}
		if diff := cmp.Diff(want, bad.Active); diff != "" || bad.Err == nil || bad.ActiveAttempt == good.ActiveAttempt {
			t.Errorf("outcome %+v: %s", bad, diff)
		}
		// It governs its pipes, and permits nobody.
		closed := pipePolicy("p", 1)
		closed.Spec.Admission = v1alpha1.AdmissionRules{Action: v1alpha1.ActionDeny, Requirement: v1alpha1.RequireSubject}
		closed.Spec.Node.Action = v1alpha1.NodeEnforce
		active, _ := r.Activated()
		if diff := cmp.Diff([]v1alpha1.PipePolicy{closed, pipePolicy("q", 1)}, active.PipePolicies); diff != "" || active.Attempt != bad.ActiveAttempt {
			t.Errorf("activated %+v: %s", active, diff)
		}
		// An older one that was different is a last good one.
		later := pipePolicy("q", 3)
		later.Unknown = "spec.zones"
		objects.set([]v1alpha1.PipePolicy{narrower, later}, []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)})
		calm()
		if o := r.latest(t); !maps.Equal(o.Active, want) || o.Err == nil || o.ActiveAttempt != bad.ActiveAttempt {
			t.Errorf("outcome %+v", o)
		}
		r.stop(t)
	})
}

func TestAReplicaWithoutALastGoodDecidesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{policyModule("a", 1, brokenRego)}
		r := run(t, objects)
		if _, ok := r.engine.Active(); ok {
			t.Error("something decides")
		}
		if o := r.latest(t); o.Err == nil || o.Revision != "" || len(o.Active) != 0 {
			t.Errorf("outcome %+v", o)
		}
		r.stop(t)
	})
}

func TestObjectsThatAreBeingDeletedDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		going := policyModule("going", 2, brokenRego)
		now := metav1.Now()
		going.DeletionTimestamp = &now
		objects := newMemory()
		objects.modules = []v1alpha1.PolicyModule{going}
		r := run(t, objects)
		if o := r.latest(t); o.Err != nil || len(o.Generations) != 0 {
			t.Errorf("outcome %+v", o)
		}
		r.stop(t)
	})
}

func TestAnAttemptThatRanOutOfTimeIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		r := run(t, objects)
		r.engine.fail = []error{errSlow, errSlow, &policy.Error{Reason: policy.ReasonTimeout, Err: context.Canceled}}
		objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)})
		calm()
		if o := r.latest(t); o.Err == nil {
			t.Fatal("a time-out is no error")
		}
		time.Sleep(4 * retryAttempt)
		synctest.Wait()
		if o := r.latest(t); o.Err != nil || len(o.Active) != 1 {
			t.Errorf("outcome %+v", o)
		}
		if r.engine.attempts.Load() != 5 {
			t.Errorf("%d attempts", r.engine.attempts.Load())
		}
		if len(r.told) != 4 { // the start, one time-out although there were two alike, the other, success
			t.Errorf("told %v", r.told)
		}
		r.stop(t)
	})
}

func TestABaseThatCannotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		r := run(t, objects)
		good := r.latest(t)
		r.noBase.Store(true)
		objects.set([]v1alpha1.PipePolicy{pipePolicy("p", 1)}, nil)
		time.Sleep(5 * retryAttempt)
		synctest.Wait()
		bad := r.latest(t)
		if bad.Err == nil || bad.Revision != good.Revision || len(bad.Generations) != 1 || len(r.told) != 2 || r.engine.attempts.Load() != 1 {
			t.Errorf("outcome %+v, told %v", bad, r.told)
		}
		r.noBase.Store(false)
		time.Sleep(retryAttempt)
		synctest.Wait()
		if o := r.latest(t); o.Err != nil || len(o.Active) != 1 {
			t.Errorf("outcome %+v", o)
		}
		r.stop(t)
	})
}

func TestAnActivationThatWasCutOffIsNoOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objects := newMemory()
		r := run(t, objects)
		before := r.latest(t)
		r.engine.block = true
		objects.set(nil, []v1alpha1.PolicyModule{policyModule("a", 1, goodRego)})
		calm()
		r.stop(t)
		if after := r.latest(t); after.Attempted != before.Attempted || after.Err != nil {
			t.Errorf("outcome %+v", after)
		}
	})
}
