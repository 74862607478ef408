package clustercmd

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestPipesThatNoNodeServesAreNamed(t *testing.T) {
	now := time.Now()
	report := func(name string, pipes ...string) *v1alpha1.GuardedNode {
		n := &v1alpha1.GuardedNode{}
		n.Name, n.ReportedAt, n.Pipes = name, metav1.NewTime(now), pipes
		return n
	}
	policy := func(pipes ...v1alpha1.PipePattern) *v1alpha1.PipePolicy {
		p := &v1alpha1.PipePolicy{}
		p.Spec.Pipes = pipes
		return p
	}
	leaving := policy("csi-proxy-gone-v1")
	leaving.DeletionTimestamp = new(metav1.NewTime(now))
	silent := report("silent", "csi-proxy-smb-v1")
	silent.ReportedAt = metav1.NewTime(now.Add(-v1alpha1.NodeSilentAfter))
	ahead := report("ahead", "csi-proxy-smb-v1")
	ahead.ReportedAt = metav1.NewTime(now.Add(time.Hour))
	var many []v1alpha1.PipePattern
	for i := range maxShown + 2 {
		many = append(many, v1alpha1.PipePattern(fmt.Sprintf("p%02d", i)))
	}
	for name, c := range map[string]struct {
		reports  []*v1alpha1.GuardedNode
		policies []any
		want     string
	}{
		"all are served":              {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1"), report("b", "csi-proxy-smb-v1")}, []any{policy("csi-proxy-disk-v1", "CSI-Proxy-SMB-v1")}, ""},
		"one is not":                  {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1"), silent}, []any{policy("csi-proxy-disk-v1", "CSI-Proxy-SMB-v1"), policy("csi-proxy-smb-v1")}, "; no node that reports serves csi-proxy-smb-v1"},
		"patterns":                    {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1")}, []any{policy("csi-proxy-smb-*", "*")}, ""},
		"an object that goes":         {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1")}, []any{leaving}, ""},
		"an earlier release":          {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1"), report("b")}, []any{policy("csi-proxy-smb-v1")}, ""},
		"no reports":                  {nil, []any{policy("csi-proxy-smb-v1")}, ""},
		"one from the future":         {[]*v1alpha1.GuardedNode{report("a", "csi-proxy-disk-v1"), ahead}, []any{policy("csi-proxy-smb-v1")}, "; no node that reports serves csi-proxy-smb-v1"},
		"only silent ones":            {[]*v1alpha1.GuardedNode{silent}, []any{policy("csi-proxy-disk-v1")}, ""},
		"more than there is room for": {[]*v1alpha1.GuardedNode{report("a", "x")}, []any{policy(many...)}, "; no node that reports serves p00, p01, p02, p03, p04, p05, p06, p07, p08, p09 and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			f := strict()
			f.lists[atPolicies], f.lists[atGuardedNodes] = c.policies, nil
			for _, n := range c.reports {
				f.lists[atGuardedNodes] = append(f.lists[atGuardedNodes], n)
			}
			report, _ := f.survey(t)
			nodes := report.Checks[slices.IndexFunc(report.Checks, func(c check) bool { return c.Check == "nodes" })]
			if _, got, ok := strings.Cut(nodes.Text, "enforce the cluster's policies"); !ok || got != c.want {
				t.Errorf("got %q, want %q", nodes.Text, c.want)
			}
		})
	}
}
