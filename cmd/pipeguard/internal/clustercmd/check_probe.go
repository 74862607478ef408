package clustercmd

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
)

// probed is a way to send the probe.
type probed struct {
	kind, path string
	entry      string // by which the webhook must refuse it
	object     map[string]any
}

// probes are the ways to send a pod that no parameters and no policy permit, in the order in which they are tried.
func probes(namespace string) []probed {
	name := map[string]any{"generateName": "pipeguard-probe-"}
	labels := map[string]any{"pipeguard.dev/probe": "true"}
	spec := map[string]any{
		"nodeSelector": map[string]any{"kubernetes.io/os": "windows"},
		"containers":   []any{map[string]any{"name": "probe", "image": "pipeguard.dev/probe"}},
		"volumes":      []any{map[string]any{"name": "probe", "hostPath": map[string]any{"path": admission.NeverAllowedPath}}},
	}
	template := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": spec}
	core := "/api/v1/namespaces/" + namespace
	return []probed{
		{"Pod", core + "/pods", entries.Pods, map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": name, "spec": spec}},
		{"PodTemplate", core + "/podtemplates", entries.Canary, map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "metadata": name, "template": template}},
		{"Deployment", "/apis/apps/v1/namespaces/" + namespace + "/deployments", entries.Workloads, map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": name,
			"spec": map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": template},
		}},
		// Which every floor leaves to the webhook, also one that the API server reads from files.
		{"PodTemplate " + admission.APICanaryName, core + "/podtemplates", entries.Canary, admission.APICanary(namespace).Object},
	}
}

// probe asks whether the API server asks.
func (s *survey) probe(ctx context.Context) check {
	c := newCheck("probe")
	floors := s.floorMode.policies()
	for _, p := range probes(s.namespace) {
		about := "the dry run of a " + p.kind + " in namespace " + s.namespace
		err := s.tryCreate(ctx, p.path, p.object)
		switch answer := entries.AnswerTo(err, p.entry, floors...); answer {
		case entries.Refused:
			c.Text = about + " was refused by Pipeguard"
			return c
		case entries.Floor:
			c.Text = about + " was refused by the floor, before the webhook was asked"
			s.probeBehind(ctx, &c)
			return c
		case entries.Admitted:
			c.Text = "the API server does not ask the webhook, and no floor refuses"
			c.no(p.kind, "%s was admitted, although no policy permits it", about)
			return c
		case entries.Unreachable, entries.Undecided:
			c.Text = "the API server asks the webhook and gets no decision"
			c.no(p.kind, "%s", why(err))
			return c
		case entries.Other, entries.None:
			c.Items = append(c.Items, item{p.kind, why(err)})
		}
	}
	c.State, c.Text = stateUnknown, "not tried: no dry run reached Pipeguard in namespace "+s.namespace+"; name another with --namespace"
	return c
}

// probeBehind asks whether the API server asks the webhook behind a floor, by what that leaves to the webhook.
func (s *survey) probeBehind(ctx context.Context, c *check) {
	if s.floorMode.replaces() {
		return
	}
	canary := admission.APICanary(s.namespace)
	err := s.tryCreate(ctx, "/api/v1/namespaces/"+s.namespace+"/podtemplates", canary.Object)
	switch answer := entries.AnswerTo(err, entries.Canary, s.floorMode.policies()...); answer {
	case entries.Refused:
		c.Text += "; what the floor leaves to the webhook was refused by that"
	case entries.Admitted:
		c.no(canary.GetName(), "the floor leaves this PodTemplate to the webhook, and the API server does not ask it: PolicyModules refuse nothing, and nothing is recorded")
	case entries.Unreachable, entries.Undecided:
		c.no(canary.GetName(), "the floor leaves this PodTemplate to the webhook, which gave no decision: %s", why(err))
	case entries.Floor, entries.Other, entries.None:
		c.Text += "; whether it asks the webhook too is not known"
	}
}
