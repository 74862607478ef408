package clustercmd

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/utils/ptr"
)

// replicasReady checks that the webhook runs, and that its replicas decide by one revision.
func (s *survey) replicasReady(ctx context.Context) check {
	c := newCheck("replicas")
	name := s.release.namespace + "/" + s.release.service
	if d, err := s.deployment(ctx, s.release); err != nil {
		c.unknown("Deployment "+name, err)
	} else {
		want, ready := ptr.Deref(d.Spec.Replicas, 1), d.Status.ReadyReplicas
		c.Text = fmt.Sprintf("%d of %d replicas are ready", ready, want)
		switch {
		case want == 0:
			c.no("Deployment "+name, "has no replicas")
		case ready < want:
			c.no("Deployment "+name, "%s", c.Text)
		case d.Status.ObservedGeneration < d.Generation || d.Status.UpdatedReplicas < want:
			c.no("Deployment "+name, "a rollout has not finished")
		}
	}
	live, err := s.replicas(ctx, s.release, s.now)
	if err != nil {
		c.unknown("Leases of the replicas", err)
		return c
	}
	if len(live) == 0 {
		c.no("Leases of the replicas", "no replica has reported lately")
		return c
	}
	s.report.Revisions = revisionsOf(live)
	for _, r := range live {
		switch {
		case r.revision == "":
			c.no(r.name, "has no policies, and refuses everything")
		case r.isFailed:
			c.no(r.name, "could not activate the newest policies, and decides by revision %s", r.revision)
		}
	}
	if len(s.report.Revisions) > 1 {
		c.no("Leases of the replicas", "they decide by different revisions: %s", strings.Join(s.report.Revisions, ", "))
	}
	c.Text = strings.TrimPrefix(c.Text+fmt.Sprintf("; %d report", len(live)), "; ")
	if len(s.report.Revisions) == 1 {
		c.Text += ", by revision " + s.report.Revisions[0]
	}
	return c
}
