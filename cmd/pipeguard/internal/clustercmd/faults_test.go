package clustercmd

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/entries"
)

// get returns an object of the fake to be changed.
func get[T any](t *testing.T, f *fakeAPI, path string, i int) T {
	t.Helper()
	o := f.objects[path]
	if list := f.lists[path]; o == nil {
		o = list[i]
	}
	out, ok := o.(T)
	if !ok {
		t.Fatalf("%s %d is a %T", path, i, o)
	}
	return out
}

type configurationOf = *admissionregistrationv1.ValidatingWebhookConfiguration

// fault is a change of a strict cluster after which a check is "no", and what it says then.
type fault struct {
	change      func(*fakeAPI)
	check, want string
}

// findsFaults changes a strict cluster in each way.
func findsFaults(t *testing.T, faults map[string]fault) {
	t.Helper()
	for name, c := range faults {
		t.Run(name, func(t *testing.T) {
			f := strict()
			c.change(f)
			report, got := f.survey(t)
			found := report.of(t, c.check)
			if got.code != cli.ExitNo || report.Verdict != verdictNot || found.State != stateNo || !strings.Contains(found.String(), c.want) {
				t.Errorf("exit code %d, verdict %s, %s", got.code, report.Verdict, found)
			}
		})
	}
}

// webhook changes one of the entries about objects, as another hand does.
func (f *fakeAPI) webhook(t *testing.T, change func(*admissionregistrationv1.ValidatingWebhook)) {
	t.Helper()
	all := get[configurationOf](t, f, atConfigurations, 0).Webhooks
	change(&all[slices.IndexFunc(all, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == entries.Pods })])
}

// charted changes the same one as a value of the chart does.
func (f *fakeAPI) charted(t *testing.T, change func(*admissionregistrationv1.ValidatingWebhook)) {
	t.Helper()
	f.webhook(t, change)
	conf := get[configurationOf](t, f, atConfigurations, 0)
	f.lists[atConfigurations][0] = configuration(conf.Name, conf.Webhooks...)
}

func (f *fakeAPI) parameters(t *testing.T, text string) {
	t.Helper()
	get[*corev1.ConfigMap](t, f, atParameters, 0).Data["parameters.yaml"] = text
}

func (f *fakeAPI) policy(t *testing.T) *v1alpha1.PipePolicy {
	t.Helper()
	return get[*v1alpha1.PipePolicy](t, f, atPolicies, 0)
}

func (f *fakeAPI) node(t *testing.T) *v1alpha1.GuardedNode {
	t.Helper()
	return get[*v1alpha1.GuardedNode](t, f, atGuardedNodes, 0)
}
