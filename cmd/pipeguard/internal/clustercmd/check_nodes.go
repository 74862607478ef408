package clustercmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
	"github.com/pipeguard/pipeguard/internal/served"
)

// nodesCounted counts the Windows nodes of the cluster.
type nodesCounted struct {
	Windows   int `json:"windows"`
	Reporting int `json:"reporting"` // with a report that is recent
	Current   int `json:"current"`   // that enforce the policies of the cluster as they are now
}

// windowsNodes selects the nodes that have pipes.
const windowsNodes = "kubernetes.io/os=windows"

// nodes checks that every Windows node enforces the policies of the cluster.
func (s *survey) nodes(ctx context.Context) check {
	c := newCheck("nodes")
	c.Text = "the nodes could not be read"
	reports := map[string]*v1alpha1.GuardedNode{}
	err := s.list(ctx, listing{path: policiesOf("guardednodes").path, accept: acceptObjects, page: 500}, func(raw []byte) error {
		n := &v1alpha1.GuardedNode{}
		if err := json.Unmarshal(raw, n); err != nil {
			return err
		}
		if policyset.Decides(n) {
			reports[n.Name] = n
			s.bar.Count(len(reports), "GuardedNodes")
		}
		return nil
	})
	if err != nil {
		c.unknown("GuardedNodes", err)
		return c
	}
	unserved := s.unservedPipes(ctx, reports)
	published, err := s.published(ctx)
	if err != nil {
		c.unknown("bundles in namespace "+s.release.namespace, err)
	}
	out := &nodesCounted{}
	err = s.list(ctx, listing{path: "/api/v1/nodes", selector: windowsNodes, accept: acceptMetadata, page: 500}, func(raw []byte) error {
		var n metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &n); err != nil {
			return err
		}
		out.Windows++
		s.bar.Count(out.Windows, "nodes")
		s.node(&c, out, n.Name, reports[n.Name], published)
		delete(reports, n.Name)
		return nil
	})
	if err != nil {
		c.unknown("Nodes", err)
		for _, name := range sortedNames(reports) { // what is known all the same
			s.node(&c, out, name, reports[name], published)
		}
		return c
	}
	s.report.Nodes = out
	c.Text = fmt.Sprintf("%d of %d Windows nodes enforce the cluster's policies", out.Current, out.Windows) + unserved
	return c
}

// node counts a node, and says why it is not current.
func (s *survey) node(c *check, out *nodesCounted, name string, n *v1alpha1.GuardedNode, published map[string]int64) {
	name = "Node " + name
	if n == nil {
		c.no(name, "has not reported: the node component is not installed on it, or does not run")
		return
	}
	if !s.isAlive(n) {
		if n.ReportedAt.After(s.now) {
			c.no(name, "reported at %s, which is in the future: its clock is wrong, or that of this machine", n.ReportedAt.UTC().Format(time.RFC3339))
		} else {
			c.no(name, "has not reported for %s", s.now.Sub(n.ReportedAt.Time).Round(time.Minute))
		}
		return
	}
	out.Reporting++
	if fault := s.faultOf(n, published); fault != "" {
		c.no(name, "%s", fault)
		return
	}
	out.Current++
}

// isAlive reports whether a node counts as one that reports. When it was last heard of, its own clock alone says here.
func (s *survey) isAlive(n *v1alpha1.GuardedNode) bool {
	return served.Alive(n, n.ReportedAt.Time, s.now)
}

// faultOf is why a node that reports does not enforce the cluster's policies as they are now; empty if it does.
func (s *survey) faultOf(n *v1alpha1.GuardedNode, published map[string]int64) string {
	text := func(format string, args ...any) string {
		out := fmt.Sprintf(format, args...)
		if n.Message != "" {
			out += ": " + n.Message
		}
		return out
	}
	switch {
	case n.State != v1alpha1.NodeGuarding:
		return text("is %s", n.State)
	case n.Bundle == nil:
		return text("reports no bundle")
	case n.Bundle.Invalid != "":
		return text("has a bundle that permits nothing (%s)", n.Bundle.Invalid)
	case n.Bundle.Refused != "":
		return text("refused the bundle that it was offered (%s)", n.Bundle.Refused)
	}
	if want, ok := published[n.Bundle.Pool]; ok && n.Bundle.Revision < want {
		return text("decides by bundle %d of pool %s, and %d is published", n.Bundle.Revision, n.Bundle.Pool, want)
	}
	if r := s.report.Revisions; len(r) == 1 && n.Bundle.PolicyRevision != r[0] {
		return text("decides by policy revision %s, and the webhook by %s", n.Bundle.PolicyRevision, r[0])
	}
	return ""
}

// published reads the numbers of the bundles that are published, by pool.
func (s *survey) published(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	l := listing{path: "/api/v1/namespaces/" + s.release.namespace + "/configmaps", selector: v1alpha1.LabelNodePool, accept: acceptMetadata, page: 500}
	err := s.list(ctx, l, func(raw []byte) error {
		var m metav1.PartialObjectMetadata
		if err := json.Unmarshal(raw, &m); err != nil {
			return err
		}
		revision, err := strconv.ParseInt(m.Annotations[v1alpha1.AnnotationBundleRevision], 10, 64)
		if err != nil {
			return fmt.Errorf("ConfigMap %s: the number of its bundle: %w", m.Name, err)
		}
		out[m.Labels[v1alpha1.LabelNodePool]] = revision
		return nil
	})
	return out, err
}
