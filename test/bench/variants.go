//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// Variants of what the API server is told to do with pods. Each has namespaces of its own, which carry its name in a
// label, and all are in force at the same time: what decides is chosen by the namespace, so that requests to one can follow
// requests to another at once, in the same API server. The chart has no selectors; these exist for the comparison alone.
const (
	nothing = "nothing" // no policy
	alone   = "floor"   // the floor, with no webhook
	webhook = "webhook" // the chart's webhook
	both    = "both"    // floor.mode Always
)

var variants = []string{nothing, alone, webhook, both}

const variantLabel = "bench.pipeguard.dev/variant"

// namespaceOf is where pods of a kind are created: the driver may have its pipes in a namespace of its own.
func namespaceOf(variant, kind string) string {
	if kind == driver {
		return "bench-" + variant + "-driver"
	}
	return "bench-" + variant
}

func selector(variants ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: variantLabel, Operator: metav1.LabelSelectorOpIn, Values: variants}}}
}

// makeVariants makes the namespaces and the floor, and turns the chart's configuration to the webhook's namespaces.
func makeVariants(ctx context.Context, api *cluster.APIServer, port int32) (authority []byte, err error) {
	for _, v := range variants {
		for _, kind := range []string{plain, driver} {
			name := namespaceOf(v, kind)
			if err := api.EnsureNamespace(ctx, name, driverAccount); err != nil {
				return nil, err
			}
			ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
			label := client.RawPatch("application/merge-patch+json", marshal(map[string]any{
				"metadata": map[string]any{"labels": map[string]string{variantLabel: v}}}))
			if err := api.Client.Patch(ctx, ns, label); err != nil {
				return nil, fmt.Errorf("label %s: %w", name, err)
			}
		}
	}
	if err := makeFloor(ctx, api.Client); err != nil {
		return nil, err
	}
	return turnWebhook(ctx, api.Client, port)
}

// turnWebhook limits the chart's configuration to its namespaces and leads it straight to the process: the way through
// this program, which stands for a Service, would count as the webhook's. What is left is as the chart has it, with its
// matchConditions.
func turnWebhook(ctx context.Context, c client.Client, port int32) (authority []byte, err error) {
	configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	if err := c.Get(ctx, client.ObjectKey{Name: cluster.ObjectConfiguration}, configuration); err != nil {
		return nil, fmt.Errorf("read the webhook configuration: %w", err)
	}
	before := configuration.DeepCopy()
	for i := range configuration.Webhooks {
		w := &configuration.Webhooks[i]
		w.NamespaceSelector, w.ClientConfig.Service.Port, authority = selector(webhook, both), &port, w.ClientConfig.CABundle
	}
	if len(authority) == 0 {
		return nil, errors.New("the webhook configuration has no authority")
	}
	if err := c.Patch(ctx, configuration, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("change the webhook configuration: %w", err)
	}
	return authority, nil
}

// parameters are those of the release and of the floor: a driver may have its pipes in the namespaces of the variants that decide.
func parameters() admission.Parameters {
	p := admission.DefaultParameters()
	p.Requirement, p.AllowedNamespaces = admission.AllowedNamespace, map[string]admission.Subjects{}
	for _, v := range []string{alone, webhook, both} {
		p.AllowedNamespaces[namespaceOf(v, driver)] = admission.Subjects{ServiceAccounts: []string{driverAccount}}
	}
	return p
}

// values are the parameters as the chart takes them.
func values() []string {
	p := parameters()
	all := []string{"parameters.requirement=" + string(p.Requirement)}
	for _, name := range slices.Sorted(maps.Keys(p.AllowedNamespaces)) {
		all = append(all, "parameters.allowedNamespaces."+name+".serviceAccounts={"+strings.Join(p.AllowedNamespaces[name].ServiceAccounts, ",")+"}")
	}
	return all
}

// makeFloor makes what the leader would write with floor.mode Always, for the namespaces that are to have it.
func makeFloor(ctx context.Context, c client.Client) error {
	made, err := floor.New(floor.Options{Name: "bench", Policies: admission.Policies{Parameters: parameters()}})
	if err != nil {
		return err
	}
	for i := range made.Bindings {
		made.Bindings[i].Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: selector(alone, both)}
	}
	for _, o := range made.Objects() {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T: %w", o, err)
		}
	}
	return nil
}
