package clustercmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/reviewcmd"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Cluster is the cluster of the command line, for the commands that judge objects.
type Cluster struct{ connection }

// Connect implements reviewcmd.Cluster.
func (c *Cluster) Connect(ctx context.Context, namespace string) (reviewcmd.Live, error) {
	a, err := c.open(namespace)
	if err != nil {
		return nil, err
	}
	r, err := a.findRelease(ctx, c.guardNamespace)
	if err != nil {
		return nil, err
	}
	return &live{api: a, release: r, now: time.Now, labels: map[string]map[string]string{}, ctx: ctx}, nil
}

var _ reviewcmd.Cluster = (*Cluster)(nil)

// AddFlags implements reviewcmd.Cluster.
func (c *Cluster) AddFlags(cmd *cobra.Command) { c.connection.AddFlags(cmd) }

// live implements reviewcmd.Live. It is for one goroutine.
type live struct {
	*api
	release release
	now     func() time.Time

	ctx    context.Context              //nolint:containedctx // of the command: admission asks for labels without one
	labels map[string]map[string]string // by namespace
	faults []error                      // of namespaces that could not be read
}

// Server implements reviewcmd.Live.
func (l *live) Server() string { return l.server }

// Namespace implements reviewcmd.Live.
func (l *live) Namespace() string { return l.namespace }

// Policies implements reviewcmd.Live.
func (l *live) Policies(ctx context.Context) (policyset.Sources, error) {
	d, err := l.deployment(ctx, l.release)
	if err != nil {
		return policyset.Sources{}, fmt.Errorf("the parameters: %w", err)
	}
	var s policyset.Sources
	if s.Parameters, err = l.parameters(ctx, l.release, d); err != nil {
		return policyset.Sources{}, fmt.Errorf("the parameters: %w", err)
	}
	for _, resource := range []string{"pipepolicies", "policymodules"} {
		if err := l.addPolicies(ctx, resource, &s); err != nil {
			return policyset.Sources{}, err
		}
	}
	return s, nil
}

func (l *live) addPolicies(ctx context.Context, resource string, to *policyset.Sources) error {
	return l.list(ctx, policiesOf(resource), func(raw []byte) error {
		var head metav1.PartialObjectMetadata
		if err := decode(resource, raw, &head); err != nil {
			return err
		}
		if !policyset.Decides(&head) {
			return nil
		}
		if err := to.Add(head.APIVersion, head.Kind, raw); err != nil {
			return fmt.Errorf("%s %s: %w", head.Kind, head.Name, err)
		}
		return nil
	})
}

// policiesOf lists a resource of the API group of Pipeguard.
func policiesOf(resource string) listing {
	return listing{path: "/apis/" + v1alpha1.GroupVersion().String() + "/" + resource, accept: acceptObjects, page: 50}
}

// Revisions implements reviewcmd.Live.
func (l *live) Revisions(ctx context.Context) ([]string, error) {
	live, err := l.replicas(ctx, l.release, l.now())
	if err != nil {
		return nil, err
	}
	if len(live) == 0 {
		return nil, errors.New("no replica of the webhook has reported lately")
	}
	return revisionsOf(live), nil
}

// Labels implements admission.NamespaceLabels: a namespace that is not there has none, and one that cannot be read is a fault.
func (l *live) Labels(namespace string) map[string]string {
	if known, ok := l.labels[namespace]; ok || namespace == "" {
		return known
	}
	var n corev1.Namespace
	err := l.get(l.ctx, "/api/v1/namespaces/"+namespace, &n)
	if err != nil && !apierrors.IsNotFound(err) {
		l.faults = append(l.faults, fmt.Errorf("the labels of namespace %s are not known: %w", namespace, err))
	}
	l.labels[namespace] = n.Labels
	return n.Labels
}

// Faults implements reviewcmd.Live.
func (l *live) Faults() error { return errors.Join(l.faults...) }

// Object implements reviewcmd.Live.
func (l *live) Object(ctx context.Context, kind metav1.APIResource, namespace, name string) ([]byte, error) {
	path := "/api/" + kind.Version
	if kind.Group != "" {
		path = "/apis/" + kind.Group + "/" + kind.Version
	}
	if kind.Namespaced {
		path += "/namespaces/" + namespace
	}
	raw, err := l.raw(ctx, path+"/"+kind.Name+"/"+name)
	return slices.Clone(raw), err
}
