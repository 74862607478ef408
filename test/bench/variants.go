//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// Variants of what the API server is told to do with pods. Each has namespaces of its own, which carry its name in a
// label, and all are in force at the same time: what decides is chosen by the namespace, so that requests to one can follow
// requests to another at once, in the same API server. The chart has no selectors; these exist for the comparison alone.
const (
	nothing = "nothing" // no policy
	cel     = "cel"     // a ValidatingAdmissionPolicy
	webhook = "webhook" // the chart's webhook
)

var variants = []string{nothing, cel, webhook}

const variantLabel = "bench.pipeguard.dev/variant"

// namespaceOf is where pods of a kind are created: the driver may have its pipes in a namespace of its own.
func namespaceOf(variant, kind string) string {
	if kind == driver {
		return "bench-" + variant + "-driver"
	}
	return "bench-" + variant
}

func selector(variant string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{variantLabel: variant}}
}

// makeVariants makes the namespaces, the policy, and turns the chart's configuration to the webhook's namespaces.
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
	if err := makePolicy(ctx, api.Client); err != nil {
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
		w.NamespaceSelector, w.ClientConfig.Service.Port, authority = selector(webhook), &port, w.ClientConfig.CABundle
	}
	if len(authority) == 0 {
		return nil, errors.New("the webhook configuration has no authority")
	}
	if err := c.Patch(ctx, configuration, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("change the webhook configuration: %w", err)
	}
	return authority, nil
}

// The policy does in CEL what can be done for the same parameters: guardedPipes csi-proxy*, requirement AllowedNamespace,
// one namespace with one service account. It is less than the webhook does, and so a lower bound of what CEL would cost.
// It does not see:
//   - other spellings of the same pipe: \\?\pipe\…, GLOBALROOT, \\localhost\pipe\…, doubled separators, dots;
//   - directories above the pipes, from which a subPath leads to them, and subPaths at all;
//   - which container mounts what, and whether it is privileged;
//   - HostProcess containers, pipes and paths of equal power;
//   - permissions that end by themselves, and policies that are objects: its lists are part of its text.
const (
	pipesExpression = `object.spec.?volumes.orValue([]).filter(v, has(v.hostPath) && v.hostPath.path.lowerAscii().replace('/', '\\').startsWith('\\\\.\\pipe\\csi-proxy'))`
	validExpression = `size(variables.pipes) == 0 || (request.namespace == 'bench-cel-driver' && object.spec.serviceAccountName == '` + driverAccount + `')`
	textExpression  = `'guarded pipes are not for this pod: ' + variables.pipes.map(v, v.name).join(', ')`
)

func makePolicy(ctx context.Context, c client.Client) error {
	name := metav1.ObjectMeta{Name: "bench"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Fail),
			MatchConstraints: &admissionregistrationv1.MatchResources{
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods", "pods/ephemeralcontainers"}},
				}}},
			},
			Variables: []admissionregistrationv1.Variable{{Name: "pipes", Expression: pipesExpression}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: validExpression, MessageExpression: textExpression, Reason: new(metav1.StatusReasonForbidden),
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        policy.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources:    &admissionregistrationv1.MatchResources{NamespaceSelector: selector(cel)},
		},
	}
	for _, o := range []client.Object{policy, binding} {
		if err := c.Create(ctx, o); err != nil {
			return fmt.Errorf("create %T: %w", o, err)
		}
	}
	return nil
}
