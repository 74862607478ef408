//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/floor"
)

// verdict is what became of a request.
type verdict string

const (
	admitted    verdict = "admitted"
	refused     verdict = "refused"
	floored     verdict = "refused by the floor" // before a webhook was asked
	unjudged    verdict = "unjudged"             // refused because there was no time for a judgement
	unreachable verdict = "unreachable"          // the API server refused because no webhook answered
	failed      verdict = "failed"               // for another reason than admission
)

// verdictOf reads the API server's words: it has no code that tells a refusal from a webhook that cannot be reached.
func verdictOf(err error) verdict {
	switch {
	case err == nil:
		return admitted
	case strings.Contains(err.Error(), ".pipeguard.dev\" denied the request: PG999"):
		return unjudged
	case strings.Contains(err.Error(), ".pipeguard.dev\" denied the request"):
		return refused
	case strings.Contains(err.Error(), floor.RefusalBegins):
		return floored
	case strings.Contains(err.Error(), "failed calling webhook"):
		return unreachable
	default:
		return failed
	}
}

// mustRefuse creates an object and expects a refusal that contains every word.
func mustRefuse(t *testing.T, o client.Object, words ...string) {
	t.Helper()
	err := shared.Client.Create(t.Context(), o)
	if v := verdictOf(err); v != refused {
		t.Errorf("%T %s is %s, want refused: %v", o, o.GetName(), v, err)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the refusal of %s does not say %q: %v", o.GetName(), word, err)
		}
	}
}

// mustAdmit creates an object and removes it after the test.
func mustAdmit(t *testing.T, o client.Object) {
	t.Helper()
	if err := shared.Client.Create(t.Context(), o); err != nil {
		t.Fatalf("%T %s is %s: %v", o, o.GetName(), verdictOf(err), err)
	}
	t.Cleanup(func() { remove(t, o) })
}

// remove deletes an object at once, whether or not there is a kubelet that would confirm it.
func remove(t *testing.T, o client.Object) {
	t.Helper()
	if err := shared.Client.Delete(context.Background(), o, client.GracePeriodSeconds(0)); err != nil && !apierrors.IsNotFound(err) {
		t.Errorf("delete %T %s: %v", o, o.GetName(), err)
	}
}

// ready asks that there are want pods with the labels, and that all of them are ready.
func ready(namespace string, want int, labels client.MatchingLabels) func(context.Context) error {
	return func(ctx context.Context) error {
		var pods corev1.PodList
		if err := shared.Client.List(ctx, &pods, client.InNamespace(namespace), labels); err != nil {
			return err
		}
		if len(pods.Items) != want {
			return fmt.Errorf("%d pods with %v in %s, want %d", len(pods.Items), labels, namespace, want)
		}
		for _, p := range pods.Items {
			if !isReady(&p) {
				return fmt.Errorf("pod %s is not ready", p.Name)
			}
		}
		return nil
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		}
	}
	return false
}

// running asks that one pod is ready.
func running(p *corev1.Pod) func(context.Context) error {
	return func(ctx context.Context) error {
		var now corev1.Pod
		if err := shared.Client.Get(ctx, client.ObjectKeyFromObject(p), &now); err != nil {
			return err
		}
		if !isReady(&now) {
			return fmt.Errorf("pod %s is %s", p.Name, now.Status.Phase)
		}
		return nil
	}
}
