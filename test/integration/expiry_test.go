//go:build !windows

package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestAPermissionEndsByItself(t *testing.T) {
	const lasts = 8 * time.Second
	ungoverned(t)
	mine := namespace(t, "mine", driver)
	s := subject(mine)
	s.Owner, s.Reason, s.ExpiresAt = "storage team", "until the next release of the driver", new(metav1.NewTime(time.Now().Add(lasts)))
	p := pipePolicy("exception", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, s)
	admin, warned := warnings(t)
	if err := admin.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if len(warned.texts) != 1 || !strings.Contains(warned.texts[0], "subject node expires in") {
		t.Errorf("warnings for the policy's author: %q", warned.texts)
	}
	become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue)
	until := p.Spec.Subjects[0].ExpiresAt.Time // as it was stored, in whole seconds
	warned.texts = nil
	err := admin.Create(t.Context(), pod(mine, driver, diskPipe))
	if time.Now().Before(until) {
		if err != nil {
			t.Errorf("before its end: %v", err)
		}
		if len(warned.texts) != 1 || !strings.HasPrefix(warned.texts[0], "PG009: ") {
			t.Errorf("warnings for the pod's author: %q", warned.texts)
		}
	} else {
		t.Logf("this machine was too slow to see the time before the end: %v", err)
	}
	become(t, p, v1alpha1.ConditionReady, metav1.ConditionTrue)
	before := p.Status.Revision

	// No attempt from here on may be admitted, and none before the end refused.
	for {
		asked := time.Now()
		err := at(t).api.Client.Create(t.Context(), pod(mine, driver, diskPipe), client.DryRunAll)
		answered := time.Now()
		if err != nil && answered.Before(until) {
			t.Fatalf("refused %s before its end: %v", until.Sub(answered), err)
		}
		if err == nil && !asked.Before(until) {
			t.Fatalf("admitted %s after its end", asked.Sub(until))
		}
		if err != nil {
			refused(t, err, "PG010")
			break
		}
	}
	eventually(t, "the status counts the subject as expired", func(ctx context.Context) error {
		if err := at(t).api.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return err
		}
		if p.Status.Subjects != (v1alpha1.SubjectCounts{Expired: 1}) {
			return fmt.Errorf("subjects: %+v", p.Status.Subjects)
		}
		return nil
	})
	happened(t, p, "SubjectExpired", "node")
	if p.Status.Revision != before {
		t.Errorf("the revision changed from %s to %s, although nobody changed a policy", before, p.Status.Revision)
	}
	metrics, err := guarded(t).Replicas[0].Metrics(t.Context())
	if want := `pipeguard_subjects{policy="exception",state="expired"} 1`; err != nil || !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s: %v", want, err)
	}
}
