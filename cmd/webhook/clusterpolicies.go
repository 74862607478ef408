package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// policySources reads everything that decides together now.
func policySources(from client.Reader, base func() (policy.Modules, admission.Parameters, error)) func(context.Context) (policyset.Sources, error) {
	return func(ctx context.Context) (policyset.Sources, error) {
		files, params, err := base()
		if err != nil {
			return policyset.Sources{}, err
		}
		var pipes v1alpha1.PipePolicyList
		if err := from.List(ctx, &pipes); err != nil {
			return policyset.Sources{}, fmt.Errorf("list PipePolicies: %w", err)
		}
		var modules v1alpha1.PolicyModuleList
		if err := from.List(ctx, &modules); err != nil {
			return policyset.Sources{}, fmt.Errorf("list PolicyModules: %w", err)
		}
		s := policyset.Sources{Base: files, Parameters: params}
		for _, p := range pipes.Items {
			if p.DeletionTimestamp == nil { // what is being deleted decides no more
				s.PipePolicies = append(s.PipePolicies, p)
			}
		}
		for _, m := range modules.Items {
			if m.DeletionTimestamp == nil {
				s.PolicyModules = append(s.PolicyModules, m)
			}
		}
		return s, nil
	}
}

// permissions knows when permissions end, or begin to be warned of.
type permissions struct {
	objects client.Reader
	source  *source
}

// nextChange returns the first instant after another at which a permission ends or its end comes near.
func (p permissions) nextChange(after time.Time) (next time.Time, found bool) {
	consider := func(end time.Time) {
		for _, t := range []time.Time{end.Add(-admission.ExpiryWarning), end} {
			if t.After(after) && (!found || t.Before(next)) {
				next, found = t, true
			}
		}
	}
	if params, err := p.source.parameters(); err == nil {
		for _, policy := range params.PipePolicies {
			for _, s := range policy.Subjects {
				if !s.ExpiresAt.IsZero() {
					consider(s.ExpiresAt)
				}
			}
		}
	}
	var pipes v1alpha1.PipePolicyList
	if err := p.objects.List(context.Background(), &pipes); err != nil { // then nothing is known of an end; the scan judges all again within the hour
		return next, found
	}
	for _, policy := range pipes.Items {
		for _, s := range policy.Spec.Subjects {
			if s.ExpiresAt != nil {
				consider(s.ExpiresAt.Time)
			}
		}
	}
	return next, found
}

// maxLookup bounds the wait for the labels of a namespace.
const maxLookup = 100 * time.Millisecond

// namespaceMetadata asks for no more of a Namespace than its metadata.
func namespaceMetadata() *metav1.PartialObjectMetadata {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return object
}

// clusterNamespaces knows the labels of the cluster's namespaces.
type clusterNamespaces struct{ objects client.Reader }

// Labels returns the labels of a namespace; none if the namespace is not known.
func (n *clusterNamespaces) Labels(namespace string) map[string]string {
	if namespace == "" {
		return nil
	}
	// The copy is in memory. Only before it is complete does reading wait, and a review must not.
	ctx, cancel := context.WithTimeout(context.Background(), maxLookup)
	defer cancel()
	object := namespaceMetadata()
	if err := n.objects.Get(ctx, client.ObjectKey{Name: namespace}, object); err != nil {
		return nil
	}
	return object.Labels
}
