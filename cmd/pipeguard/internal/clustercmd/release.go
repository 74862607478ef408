package clustercmd

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/entries"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// Where a release is if nothing says otherwise, as in the guide.
const (
	defaultNamespace = "pipeguard-system"
	defaultService   = "pipeguard-webhook"
)

// Names in the chart's Deployment and ConfigMap.
const (
	parametersVolume = "parameters"
	parametersFile   = "parameters.yaml"
	configAnnotation = "pipeguard.dev/webhook-config" // of the Deployment's pods
	presetAnnotation = "pipeguard.dev/preset"         // of the ConfigMap with the parameters
)

// release is the installed webhook: where it runs, and the configurations that have the API server ask it.
type release struct {
	namespace, service string
	configurations     []admissionregistrationv1.ValidatingWebhookConfiguration // sorted by name
	// unread says why the configurations are not known.
	unread error
}

// findRelease reads the webhook configurations. namespace is that of the webhook if the user named it.
func (a *api) findRelease(ctx context.Context, namespace string) (release, error) {
	r := release{namespace: cmp.Or(namespace, defaultNamespace), service: defaultService}
	services := map[string]string{} // by namespace
	r.unread = a.list(ctx, listing{path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", accept: acceptObjects, page: 50}, func(raw []byte) error {
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		if err := json.Unmarshal(raw, &c); err != nil {
			return err
		}
		c.Webhooks = slices.DeleteFunc(c.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return !strings.HasSuffix(w.Name, entries.Suffix)
		})
		if len(c.Webhooks) == 0 {
			return nil
		}
		if s := c.Webhooks[0].ClientConfig.Service; s != nil && (namespace == "" || s.Namespace == namespace) {
			services[s.Namespace] = s.Name
		} else if s != nil {
			return nil // of another release
		}
		r.configurations = append(r.configurations, c)
		return nil
	})
	if len(services) > 1 {
		return r, fmt.Errorf("there are webhooks of Pipeguard in %d namespaces: name one with --guard-namespace", len(services))
	}
	for namespace, service := range services {
		r.namespace, r.service = namespace, service
	}
	slices.SortFunc(r.configurations, func(a, b admissionregistrationv1.ValidatingWebhookConfiguration) int {
		return strings.Compare(a.Name, b.Name)
	})
	return r, nil
}

// deployment reads the webhook's Deployment, which has the name of its Service.
func (a *api) deployment(ctx context.Context, r release) (*appsv1.Deployment, error) {
	var d appsv1.Deployment
	if err := a.get(ctx, "/apis/apps/v1/namespaces/"+r.namespace+"/deployments/"+r.service, &d); err != nil {
		return nil, err
	}
	return &d, nil
}

// parameters reads the parameters of the ConfigMap that the Deployment mounts, as the webhook reads the file.
func (a *api) parameters(ctx context.Context, r release, d *appsv1.Deployment) (admission.Parameters, error) {
	p, _, err := a.parametersAndPreset(ctx, r, d)
	return p, err
}

// parametersAndPreset are the parameters with the name of the preset that the chart wrote beside them; empty if the release names none.
func (a *api) parametersAndPreset(ctx context.Context, r release, d *appsv1.Deployment) (p admission.Parameters, preset string, err error) {
	name := ""
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Name == parametersVolume && v.ConfigMap != nil {
			name = v.ConfigMap.Name
		}
	}
	if name == "" {
		return admission.Parameters{}, "", fmt.Errorf("deployment %s/%s has no volume %q with a ConfigMap", r.namespace, r.service, parametersVolume)
	}
	var c corev1.ConfigMap
	if err := a.get(ctx, "/api/v1/namespaces/"+r.namespace+"/configmaps/"+name, &c); err != nil {
		return admission.Parameters{}, "", err
	}
	text, ok := c.Data[parametersFile]
	if !ok {
		return admission.Parameters{}, "", fmt.Errorf("ConfigMap %s/%s has no %s", r.namespace, name, parametersFile)
	}
	p, err = admission.ParseParameters([]byte(text), policyset.ReadPipePolicy)
	if err != nil {
		return p, "", fmt.Errorf("ConfigMap %s/%s: %w", r.namespace, name, err)
	}
	return p, c.Annotations[presetAnnotation], nil
}

// replica is what a replica of the webhook reports in its Lease.
type replica struct {
	name, revision string
	isFailed       bool // it could not activate the newest policies
}

// replicas reads the Leases of the replicas that are live.
func (a *api) replicas(ctx context.Context, r release, now time.Time) (live []replica, err error) {
	l := listing{
		path:     "/apis/coordination.k8s.io/v1/namespaces/" + r.namespace + "/leases",
		selector: v1alpha1.LabelReplica + "=true", accept: acceptObjects, page: 500,
	}
	err = a.list(ctx, l, func(raw []byte) error {
		var lease coordinationv1.Lease
		if err := json.Unmarshal(raw, &lease); err != nil {
			return err
		}
		if t := lease.Spec.RenewTime; lease.DeletionTimestamp == nil && t != nil && now.Sub(t.Time) < v1alpha1.ReplicaLiveFor {
			live = append(live, replica{lease.Name, lease.Annotations[v1alpha1.AnnotationRevision], lease.Annotations[v1alpha1.AnnotationFailed] != ""})
		}
		return nil
	})
	slices.SortFunc(live, func(a, b replica) int { return strings.Compare(a.name, b.name) })
	return live, err
}

// revisionsOf are the different revisions by which replicas decide, sorted.
func revisionsOf(live []replica) []string {
	var out []string
	for _, r := range live {
		out = append(out, cmp.Or(r.revision, "none"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
