//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// another starts a second replica for the time of a test. It returns the one that leads and the one that follows.
func another(t *testing.T) (release *cluster.Release, leads, follows *cluster.Replica) {
	t.Helper()
	release = guarded(t)
	first := release.Replicas[0]
	alone := leading(t)
	second, err := release.AddReplica(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for len(release.Replicas) > 1 { // whichever the test has left
			if err := release.StopReplica(context.WithoutCancel(t.Context()), release.Replicas[1]); err != nil {
				t.Error(err)
			}
		}
	})
	if err := second.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if leading(t) != alone { // the first was too late to renew its lease
		return release, second, first
	}
	return release, first, second
}

// leading waits until a replica leads, and returns the identity that it holds the lease under.
func leading(t *testing.T) (holder string) {
	t.Helper()
	eventually(t, "a replica leads", func(ctx context.Context) (err error) {
		holder, err = at(t).leader(ctx)
		return err
	})
	return holder
}

// leader is the identity that holds the lease.
func (s *site) leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := s.api.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Lease}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.Join(err, errors.New("nobody leads"))
	}
	return *lease.Spec.HolderIdentity, nil
}

func TestAPolicyIsReadyOnceEveryReplicaDecidesByIt(t *testing.T) {
	ungoverned(t)
	release, _, deaf := another(t)
	mine := namespace(t, "mine", driver)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
	if status := ready(t, p); status.Replicas != (v1alpha1.ReplicaCounts{Live: 2, Current: 2, Summary: "2/2"}) {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	old, err := revision(t.Context(), deaf)
	if err != nil {
		t.Fatal(err)
	}

	// One replica no longer hears of changes, and the API server no longer hears from it.
	deaf.Link.Hold()
	defer deaf.Link.Release()
	changed(t, p, func() { p.Spec.Subjects = nil })
	var status v1alpha1.PolicyStatus
	eventually(t, "the other one decides by it", func(context.Context) error {
		become(t, p, v1alpha1.ConditionReady, metav1.ConditionFalse)
		if status = become(t, p, v1alpha1.ConditionPublished, metav1.ConditionFalse); status.Replicas.Summary == "0/2" {
			return errors.New("the leader has not reported yet")
		}
		return nil
	})
	if status.Replicas.Summary != "1/2" || status.Revision == old {
		t.Errorf("status: %+v, the old revision is %s", status, old)
	}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionPublished && !strings.Contains(c.Message, deaf.Pod) {
			t.Errorf("Published does not name %s: %s", deaf.Pod, c.Message)
		}
	}
	// Each answers by its own revision, and says which.
	admitted, denied := 0, 0
	eventually(t, "both have answered", func(ctx context.Context) error {
		release.Balancer.HangUp() // so that the API server's next connection goes to the other one
		err := at(t).api.Client.Create(ctx, pod(mine, driver, diskPipe), client.DryRunAll)
		switch {
		case err == nil:
			admitted++
		case ruled(err, "PG010") && strings.Contains(err.Error(), status.Revision[:19]):
			denied++
		case tooLate(err):
		case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to call webhook: Post"):
			// The API server took a connection that was just hung up on, before it had noticed. That was this test.
		case ctx.Err() == nil:
			t.Errorf("neither revision answers so: %v", err)
		}
		if admitted < 10 || denied < 10 {
			return fmt.Errorf("%d admitted, %d denied", admitted, denied)
		}
		return nil
	})

	deaf.Link.Release()
	if status := become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue); status.Replicas.Summary != "2/2" {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	if now, err := revision(t.Context(), deaf); err != nil || now != status.Revision {
		t.Errorf("the one that was deaf decides by %s, not by %s: %v", now, status.Revision, err)
	}
	refused(t, at(t).api.Client.Create(t.Context(), pod(mine, driver, diskPipe)), "PG010")
}

func TestAnotherReplicaLeadsWhenTheLeaderIsGone(t *testing.T) {
	ungoverned(t)
	release, leads, follows := another(t)
	before := leading(t)
	l := load(t, 2, func(i int) client.Object {
		if i%2 == 0 {
			return pod(drivers, driver, pipe)
		}
		return pod(drivers, "", pipe)
	})
	if err := release.StopReplica(t.Context(), leads); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other one leads", func(ctx context.Context) error {
		holder, err := at(t).leader(ctx)
		if err == nil && holder == before {
			err = fmt.Errorf("%s still leads", holder)
		}
		return err
	})
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(drivers))
	if status := ready(t, p); status.Replicas.Summary != "1/1" {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	l.decided(t, 10, 10)
	checked(t, l.stop(), 2) // a hand can be on a connection that the leader has just closed
	if err := follows.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// checked checks the answers to a load of which the even ones are the driver's, to be admitted, and the odd ones are to
// be refused. At most as many as lost may have had no answer, which admits nobody.
func checked(t *testing.T, answers []answer, lost int) {
	t.Helper()
	admitted, denied, late := 0, 0, 0
	for _, a := range answers {
		isDriver := (a.name[len(a.name)-1]-'0')%2 == 0
		switch {
		case tooLate(a.err):
			late++
		case isDriver && a.err == nil:
			admitted++
		case !isDriver && ruled(a.err, "PG001"):
			denied++
		case lost > 0 && apierrors.IsInternalError(a.err) && strings.HasSuffix(a.err.Error(), "EOF"):
			lost--
			t.Logf("%s: %v", a.name, a.err)
		default:
			t.Errorf("%s (the driver's: %t): %v", a.name, isDriver, a.err)
		}
	}
	if admitted < 10 || denied < 10 {
		t.Errorf("%d admitted, %d denied, %d too late: the test says little", admitted, denied, late)
	}
	t.Logf("%d admitted, %d denied, %d too late", admitted, denied, late)
}
