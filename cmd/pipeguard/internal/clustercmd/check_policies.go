package clustercmd

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// policies checks the policy objects: whether each decides, everywhere, and refuses.
func (s *survey) policies(ctx context.Context) check {
	c := newCheck("policies")
	pipes, modules := 0, 0
	err := s.list(ctx, policiesOf("pipepolicies"), func(raw []byte) error {
		var p v1alpha1.PipePolicy
		if err := json.Unmarshal(raw, &p); err != nil {
			return err
		}
		if policyset.Decides(&p) {
			pipes++
			s.bar.Count(pipes, "PipePolicies")
			pipePolicy(&c, &p)
		}
		return nil
	})
	if err != nil {
		c.unknown("PipePolicies", err)
	}
	err = s.list(ctx, policiesOf("policymodules"), func(raw []byte) error {
		var m v1alpha1.PolicyModule
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		if policyset.Decides(&m) {
			modules++
			conditions(&c, "PolicyModule "+m.Name, m.Generation, m.Status.PolicyStatus)
		}
		return nil
	})
	if err != nil {
		c.unknown("PolicyModules", err)
	}
	c.Text = fmt.Sprintf("%d PipePolicies and %d PolicyModules", pipes, modules)
	return c
}

func pipePolicy(c *check, p *v1alpha1.PipePolicy) {
	name := "PipePolicy " + p.Name
	conditions(c, name, p.Generation, p.Status.PolicyStatus)
	if a := p.Spec.Admission.Action; len(p.Spec.Pipes) > 0 && a != "" && a != v1alpha1.ActionDeny {
		c.no(name, "admission.action is %s: nothing is refused", a)
	}
	if p.Spec.Node.Action == v1alpha1.NodeLogOnly {
		c.no(name, "node.action is %s: nodes refuse nothing", p.Spec.Node.Action)
	}
	if n := p.Status.Nodes; n != nil && n.Current < n.Total {
		c.no(name, "%d of %d nodes decide by it", n.Current, n.Total)
	}
}

// alarming are the conditions that must not be false. ModesServed is advice, and ExpressedOnNodes names what holds at admission alone.
var alarming = []string{v1alpha1.ConditionReady, v1alpha1.ConditionBundlesPublished}

// conditions adds what the status of a policy object says against it.
func conditions(c *check, name string, generation int64, status v1alpha1.PolicyStatus) {
	if status.ObservedGeneration != generation {
		c.no(name, "its newest generation was not looked at yet")
		return
	}
	for _, kind := range alarming {
		found := meta.FindStatusCondition(status.Conditions, kind)
		switch {
		case found == nil && kind == v1alpha1.ConditionReady:
			c.no(name, "its status does not say that it decides")
		case found != nil && found.Status != metav1.ConditionTrue:
			c.no(name, "%s is %s: %s: %s", kind, found.Status, found.Reason, found.Message)
		}
	}
}
