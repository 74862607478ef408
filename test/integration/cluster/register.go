//go:build !windows

package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// takesEffect is how long the API server may need to take over a webhook configuration: it watches them, on a machine that may be busy.
const takesEffect = 2 * time.Minute

// Refuses says that a webhook refused a probe by a rule: it is asked, and it judges.
func Refuses(answer error) bool {
	return apierrors.IsForbidden(answer) && strings.Contains(answer.Error(), "PG003")
}

// Register creates a webhook configuration and returns when the API server acts by it, which is after creating it has
// answered. asked tells that from how a probe was answered: a pod with a volume that names no single pipe.
func (a *APIServer) Register(ctx context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, asked func(answer error) bool) error {
	if err := a.EnsureService(ctx); err != nil {
		return err
	}
	if err := a.Client.Create(ctx, c); err != nil {
		return fmt.Errorf("register %s: %w", c.Name, err)
	}
	return a.AwaitProbe(ctx, asked)
}

// Unregister removes a webhook configuration and returns when the API server no longer acts by any.
func (a *APIServer) Unregister(ctx context.Context, c client.Object) error {
	if err := a.Delete(ctx, c); err != nil {
		return err
	}
	return a.AwaitProbe(ctx, func(answer error) bool { return answer == nil })
}

// AwaitProbe sends probes, as trials that create nothing, until one is answered as wanted.
func (a *APIServer) AwaitProbe(ctx context.Context, wanted func(answer error) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, takesEffect, fmt.Errorf("no probe was answered as wanted within %s", takesEffect))
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		answer := a.Client.Create(ctx, Probe(), client.DryRunAll)
		if ctx.Err() == nil && wanted(answer) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; the last answer: %w", context.Cause(ctx), answer)
		case <-again.C:
		}
	}
}

// Probe is a pod that every webhook with the default policy refuses, because its path names no single pipe.
func Probe() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "probe", Image: "example.com/probe"}},
			Volumes: []corev1.Volume{{Name: "probe", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: `\\.\pipe\`},
			}}},
		},
	}
}

// portOf returns the port of an address that was chosen by the system.
func portOf(address string) int32 {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0
	}
	return int32(port)
}
