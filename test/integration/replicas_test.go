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

// another starts a second replica for the time of a test.
func another(t *testing.T) (*cluster.Release, *cluster.Replica) {
	t.Helper()
	release := guarded(t)
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
	return release, second
}

// leader is the pod that holds the lease.
func leader(ctx context.Context) (string, error) {
	lease := &coordinationv1.Lease{}
	err := shared.api.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Lease}, lease)
	if err != nil || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", errors.Join(err, errors.New("nobody leads"))
	}
	return *lease.Spec.HolderIdentity, nil
}

func TestAPolicyIsReadyOnceEveryReplicaDecidesByIt(t *testing.T) {
	ungoverned(t)
	release, second := another(t)
	mine := namespace(t, "mine", driver)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
	if status := ready(t, p); status.Replicas != (v1alpha1.ReplicaCounts{Live: 2, Current: 2, Summary: "2/2"}) {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	old, err := revision(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}

	// The second replica no longer hears of changes, and nobody hears from it.
	second.Link.Hold()
	defer second.Link.Release()
	changed(t, p, func() { p.Spec.Subjects = nil })
	status := become(t, p, v1alpha1.ConditionPublished, metav1.ConditionFalse)
	become(t, p, v1alpha1.ConditionReady, metav1.ConditionFalse)
	if status.Replicas.Summary != "1/2" || status.Revision == old {
		t.Errorf("status: %+v, the old revision is %s", status, old)
	}
	for _, c := range status.Conditions {
		if c.Type == v1alpha1.ConditionPublished && !strings.Contains(c.Message, second.Pod) {
			t.Errorf("Published does not name %s: %s", second.Pod, c.Message)
		}
	}
	// Each answers by its own revision, and says which.
	answers := map[string]int{}
	for attempt := 0; answers["admitted"]+answers["refused"] < 40 && attempt < 120; attempt++ {
		release.Balancer.HangUp() // so that the API server's next connection goes to the other one
		err := shared.api.Client.Create(t.Context(), pod(mine, driver, diskPipe), client.DryRunAll)
		switch {
		case err == nil:
			answers["admitted"]++
		case ruled(err, "PG010") && strings.Contains(err.Error(), status.Revision[:19]):
			answers["refused"]++
		case apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed to call webhook: Post"):
			// The API server took a connection that was just hung up on, before it had noticed. That was this test.
		default:
			answers[err.Error()]++
		}
	}
	if answers["admitted"] == 0 || answers["refused"] == 0 || answers["admitted"]+answers["refused"] != 40 || len(answers) != 2 {
		t.Errorf("answers: %v", answers)
	}

	second.Link.Release()
	if status := become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue); status.Replicas.Summary != "2/2" {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	if now, err := revision(t.Context(), second); err != nil || now != status.Revision {
		t.Errorf("the second decides by %s, not by %s: %v", now, status.Revision, err)
	}
	refused(t, shared.api.Client.Create(t.Context(), pod(mine, driver, diskPipe)), "PG010")
}

func TestAnotherReplicaLeadsWhenTheLeaderIsGone(t *testing.T) {
	ungoverned(t)
	release, second := another(t)
	first := release.Replicas[0]
	eventually(t, "the first one leads", func(ctx context.Context) error {
		holder, err := leader(ctx)
		if err == nil && !strings.HasPrefix(holder, first.Pod) && !strings.Contains(holder, "_") {
			err = fmt.Errorf("%s leads", holder)
		}
		return err
	})
	before, err := leader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stop := load(t, 2, func(i int) client.Object {
		if i%2 == 0 {
			return pod(drivers, driver, pipe)
		}
		return pod(drivers, "", pipe)
	})
	if err := release.StopReplica(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other one leads", func(ctx context.Context) error {
		holder, err := leader(ctx)
		if err == nil && holder == before {
			err = fmt.Errorf("%s still leads", holder)
		}
		return err
	})
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(drivers))
	if status := ready(t, p); status.Replicas.Summary != "1/1" {
		t.Errorf("replicas: %+v", status.Replicas)
	}
	checked(t, stop(), 2) // a hand can be on a connection that the first one has just closed
	if err := second.Ready(t.Context()); err != nil {
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
	if admitted < 10 || denied < 10 || late > len(answers)/10 {
		t.Errorf("%d admitted, %d denied, %d too late: the test says little", admitted, denied, late)
	}
	t.Logf("%d admitted, %d denied, %d too late", admitted, denied, late)
}
