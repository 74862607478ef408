package controller

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// leaseServer keeps one Lease, and one Pod if there is a UID.
type leaseServer struct {
	client.Client
	podUID string

	mu     sync.Mutex // guards the rest
	lease  *coordinationv1.Lease
	writes int
	fail   error
}

// stored is the Lease, or nil, and how often one was written.
func (s *leaseServer) stored() (*coordinationv1.Lease, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lease.DeepCopy(), s.writes
}

// change does something to what is stored.
func (s *leaseServer) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *leaseServer) notFound() error {
	return apierrors.NewNotFound(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, "x")
}

func (s *leaseServer) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	pod, ok := o.(*corev1.Pod)
	if !ok || s.podUID == "" || key != (client.ObjectKey{Namespace: "pipeguard-system", Name: "web-1"}) {
		return s.notFound()
	}
	pod.UID = "uid-1"
	return nil
}

func (s *leaseServer) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	if s.lease == nil || o.GetName() != s.lease.Name {
		return s.notFound()
	}
	text, err := p.Data(o)
	if err != nil {
		return err
	}
	s.writes++
	return json.Unmarshal(text, s.lease)
}

func (s *leaseServer) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	lease, ok := o.(*coordinationv1.Lease)
	if !ok {
		return errors.New("not a Lease")
	}
	s.lease = lease
	s.writes++
	return nil
}

func (s *leaseServer) Delete(ctx context.Context, o client.Object, _ ...client.DeleteOption) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil || o.GetName() != s.lease.Name || o.GetNamespace() != s.lease.Namespace {
		return s.notFound()
	}
	s.lease = nil
	return nil
}

func reporting(t *testing.T, s *leaseServer) (*outcomes, func()) {
	t.Helper()
	var o outcomes
	r := &Replicas{
		namespace: "pipeguard-system", pod: "web-1", leases: s, live: s, outcome: o.Latest, wake: o.Subscribe(), log: zap.NewNop(), now: time.Now,
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Start(ctx) }()
	synctest.Wait()
	return &o, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestAReplicaReportsEachOutcomeAtOnceAndItselfEveryHalfMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{podUID: "uid-1"}
		o, stop := reporting(t, s)
		if lease, _ := s.stored(); lease != nil {
			t.Error("it reports before it knows anything")
		}
		o.publish(Outcome{Revision: "sha256:1", Attempted: "one"})
		synctest.Wait()
		if lease, _ := s.stored(); lease == nil || lease.Annotations[v1alpha1.AnnotationRevision] != "sha256:1" || len(lease.OwnerReferences) != 1 {
			t.Fatalf("Lease %+v", lease)
		}
		o.publish(Outcome{Revision: "sha256:1", Attempted: "two", Err: errDisk})
		synctest.Wait()
		lease, _ := s.stored()
		if a := lease.Annotations; a[annotationAttempted] != "two" || a[v1alpha1.AnnotationFailed] != "true" {
			t.Errorf("annotations %v", a)
		}
		o.publish(Outcome{Revision: "sha256:3", Attempted: "three"})
		synctest.Wait()
		lease, before := s.stored()
		if a := lease.Annotations; a[v1alpha1.AnnotationRevision] != "sha256:3" || a[v1alpha1.AnnotationFailed] != "" {
			t.Errorf("annotations %v", a)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		lease, after := s.stored()
		if n := after - before; n != 120 {
			t.Errorf("%d reports in an hour", n)
		}
		if age := time.Since(lease.Spec.RenewTime.Time); age > renewEvery {
			t.Errorf("the last report is %s old", age)
		}
		stop()
		if lease, _ := s.stored(); lease != nil {
			t.Error("it still counts after its end")
		}
	})
}

func TestALeaseThatWasDeletedComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{podUID: "uid-1"}
		o, stop := reporting(t, s)
		o.publish(Outcome{Revision: "sha256:1"})
		synctest.Wait()
		s.change(func() { s.lease = nil })
		time.Sleep(renewEvery)
		synctest.Wait()
		if lease, _ := s.stored(); lease == nil || lease.Labels[v1alpha1.LabelReplica] != "true" || lease.Annotations[v1alpha1.AnnotationRevision] != "sha256:1" {
			t.Errorf("Lease %+v", lease)
		}
		stop()
	})
}

func TestAReportThatDoesNotArriveIsRepeatedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{fail: errDisk}
		o, stop := reporting(t, s)
		o.publish(Outcome{Revision: "sha256:1"})
		time.Sleep(time.Minute)
		s.change(func() { s.fail = nil })
		time.Sleep(retryReport)
		synctest.Wait()
		if lease, _ := s.stored(); lease == nil {
			t.Error("it was not repeated")
		}
		stop()
	})
}

func TestAReplicaThatNeverDecidesIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &leaseServer{}
		_, stop := reporting(t, s)
		time.Sleep(renewEvery)
		synctest.Wait()
		if lease, _ := s.stored(); lease == nil || lease.Annotations[v1alpha1.AnnotationRevision] != "" {
			t.Errorf("Lease %+v", lease)
		}
		stop()
	})
}
