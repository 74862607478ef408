//go:build !windows

package integration

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
)

// limit bounds each wait of these tests: what takes longer does not happen. It is long, because the machine may be busy.
const limit = 3 * time.Minute

// rendered is the chart with values as for helm's --set.
func rendered(t *testing.T, values ...string) cluster.Chart {
	t.Helper()
	c, err := cluster.RenderChart(t.Context(), shared.tools, cluster.ChartDir(), append([]string{patience}, values...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// namespace makes a namespace of the test's own.
func namespace(t *testing.T, word string, serviceAccounts ...string) string {
	t.Helper()
	name := word + "-" + strings.ToLower(rand.Text()[:8])
	if err := at(t).api.EnsureNamespace(t.Context(), name, serviceAccounts...); err != nil {
		t.Fatal(err)
	}
	return name
}

// eventually asks until the answer is nil.
func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	harness.Eventually(t, limit, what, ask)
}

// refused checks that a webhook refused by the rules with these codes, and returns the answer.
func refused(t *testing.T, err error, codes ...string) metav1.Status {
	t.Helper()
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) || !strings.Contains(status.ErrStatus.Message, `admission webhook "`) {
		t.Errorf("got %v, want a refusal", err)
		return metav1.Status{}
	}
	for _, code := range codes {
		if !strings.Contains(status.ErrStatus.Message, "\n"+code+": ") {
			t.Errorf("the refusal does not name %s:\n%s", code, status.ErrStatus.Message)
		}
	}
	return status.ErrStatus
}

// causes returns the fields that a refusal names, each with its code.
func causes(status metav1.Status) (out []string) {
	if status.Details != nil {
		for _, c := range status.Details.Causes {
			out = append(out, string(c.Type)+" "+c.Field)
		}
	}
	return out
}

// warned collects the warnings that come with answers, as kubectl shows them.
type warned struct{ texts []string }

func (w *warned) HandleWarningHeader(_ int, _, text string) { w.texts = append(w.texts, text) }

// warnings returns a client of the administrator and what is warned of through it. It is for one goroutine.
func warnings(t *testing.T) (client.Client, *warned) {
	t.Helper()
	config, w := rest.CopyConfig(at(t).api.Config), &warned{}
	config.WarningHandler = w
	return newClient(t, config), w
}

func newClient(t *testing.T, config *rest.Config) patient {
	t.Helper()
	c, err := cluster.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return patient{c}
}

// created creates objects that nobody may refuse.
func created(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, o := range objects {
		if err := at(t).api.Client.Create(t.Context(), o); err != nil {
			t.Fatalf("create %T %s: %v", o, o.GetName(), err)
		}
	}
}

// deleted removes objects when the test is over.
func deleted(t *testing.T, objects ...client.Object) {
	t.Helper()
	api := at(t).api
	t.Cleanup(func() {
		if err := api.Delete(context.WithoutCancel(t.Context()), objects...); err != nil {
			t.Error(err)
		}
	})
}

// changed stores a change of an object that others may write to at the same time.
func changed(t *testing.T, o client.Object, change func()) {
	t.Helper()
	was, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		t.Fatalf("%T is no object", o)
	}
	change()
	if err := at(t).api.Client.Patch(t.Context(), o, client.MergeFrom(was)); err != nil {
		t.Fatalf("change %T %s: %v", o, o.GetName(), err)
	}
}

// named gives an object a name of its own.
func named[O client.Object](o O, namespace string) O {
	o.SetNamespace(namespace)
	o.SetName(fmt.Sprintf("%s-%s", strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")), strings.ToLower(rand.Text()[:8])))
	return o
}

// refusedSoon waits until objects of a sort are refused for a reason, after a change that takes a moment.
func refusedSoon(t *testing.T, make func() client.Object, code string) {
	t.Helper()
	eventually(t, "refused with "+code, func(ctx context.Context) error {
		err := at(t).api.Client.Create(ctx, make(), client.DryRunAll)
		if err == nil {
			return errors.New("still admitted")
		}
		if !strings.Contains(err.Error(), "\n"+code+": ") {
			return err
		}
		return nil
	})
}
