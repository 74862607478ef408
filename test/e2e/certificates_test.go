//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/test/harness"
)

// lostCertificateIsReplaced deletes the Secret. Replicas go on with the certificate that they have; the Secret comes with an
// upgrade, as the chart's README says, because the webhook may create none, and a new certificate with it.
func lostCertificateIsReplaced(t *testing.T) {
	key := client.ObjectKey{Namespace: system, Name: "pipeguard-webhook-cert"}
	var secret corev1.Secret
	if err := shared.Client.Get(t.Context(), key, &secret); err != nil {
		t.Fatal(err)
	}
	old := bytes.Clone(secret.Data["tls.crt"])
	l := startLoad(t, everything...)
	remove(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
	harness.Eventually(t, readyLimit, "the driver is admitted all the same", admitsDriver)
	upgrade(t)
	harness.Eventually(t, readyLimit, "there is a new certificate", func(ctx context.Context) error {
		var now corev1.Secret
		if err := shared.Client.Get(ctx, key, &now); err != nil {
			return err
		}
		if now.UID == secret.UID || len(now.Data["tls.crt"]) == 0 || len(now.Data["ca.crt"]) == 0 {
			return errors.New("the secret is not filled in")
		}
		if bytes.Equal(now.Data["tls.crt"], old) {
			return errors.New("the certificate is the old one")
		}
		return nil
	})
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)
	harness.Eventually(t, time.Minute, "driver pods are admitted", l.recovered(driverPods, admitted))
	l.judge(t)
}
