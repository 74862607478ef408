//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// silence is how long replicas hear nothing from the API server: far longer than a Lease lasts without being renewed.
const silence = time.Minute

// leaders are the pods whose processes have the leader's series: those that count replicas.
func leaders(ctx context.Context, release *cluster.Release) ([]string, error) {
	var found []string
	for _, r := range release.Replicas {
		text, err := r.Metrics(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Pod, err)
		}
		if strings.Contains(text, "\npipeguard_replicas{") {
			found = append(found, r.Pod)
		}
	}
	return found, nil
}

// leads waits until one replica leads, of those that may.
func leads(t *testing.T, release *cluster.Release, may ...*cluster.Replica) *cluster.Replica {
	t.Helper()
	var is *cluster.Replica
	eventually(t, "a replica leads", func(ctx context.Context) error {
		found, err := leaders(ctx, release)
		if err != nil || len(found) != 1 {
			return errors.Join(err, fmt.Errorf("%q lead", found))
		}
		i := slices.IndexFunc(may, func(r *cluster.Replica) bool { return r.Pod == found[0] })
		if i < 0 {
			return fmt.Errorf("%s leads", found[0])
		}
		is = may[i]
		return nil
	})
	return is
}

// oneLeads notes when more than one replica leads, until stop is called.
func oneLeads(t *testing.T, release *cluster.Release) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		again := time.NewTicker(200 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-again.C:
			}
			if found, err := leaders(ctx, release); ctx.Err() == nil && (err != nil || len(found) > 1) {
				t.Errorf("%q lead: %v", found, err)
			}
		}
	}()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// rewritten changes a policy and waits until its status says that it decides.
func rewritten(t *testing.T, p *v1alpha1.PipePolicy) v1alpha1.PolicyStatus {
	t.Helper()
	changed(t, p, func() {
		p.Spec.Subjects[0].ServiceAccounts = append(p.Spec.Subjects[0].ServiceAccounts, fmt.Sprintf("more-%d", p.Generation))
	})
	return become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue)
}

func TestASilentAPIServerEndsTheWritingAndNoReview(t *testing.T) {
	ungoverned(t)
	release, first, second := another(t)
	both := []*cluster.Replica{first, second}
	leads(t, release, both...)
	p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(drivers))
	ready(t, p)
	unwatch := oneLeads(t, release)
	l := load(t, 2, func(i int) client.Object {
		if i%2 == 0 {
			return pod(drivers, driver, pipe)
		}
		return pod(drivers, "", pipe)
	})

	for _, r := range both {
		r.Link.Hold()
		defer r.Link.Release()
	}
	heard := time.After(silence)
	eventually(t, "nobody writes", func(ctx context.Context) error {
		found, err := leaders(ctx, release)
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("%q lead", found)
		}
		return err
	})
	select {
	case <-heard:
	case <-first.Exited():
		t.Error("the first replica has ended")
	case <-second.Exited():
		t.Error("the second replica has ended")
	}
	for _, r := range both {
		r.Link.Release()
	}
	leads(t, release, both...)
	rewritten(t, p)

	// The lead goes to the other one and back: a replica that has led before does all of its work again.
	for range 2 {
		was := leads(t, release, both...)
		next := both[(slices.Index(both, was)+1)%2]
		was.Link.Hold()
		leads(t, release, next)
		was.Link.Release()
		if status := rewritten(t, p); status.Replicas.Summary != "2/2" {
			t.Errorf("replicas: %+v", status.Replicas)
		}
	}
	unwatch()
	checked(t, l.stop(), 0)
	for _, r := range both {
		select {
		case <-r.Exited():
			t.Errorf("%s has ended", r.Pod)
		default:
		}
	}
}
