//go:build !windows

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
)

// presetParameters are the parameters of a release with a preset.
func presetParameters(t *testing.T, preset string) string {
	t.Helper()
	text, err := rendered(t, "preset="+preset).Parameters()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// privilegedPod is a pod whose container says that it is privileged.
func privilegedPod(namespace, path string) *corev1.Pod {
	p := pod(namespace, "", path)
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
	return p
}

func TestThePresetObserveRecordsAndRefusesNothing(t *testing.T) {
	parameterized(t, presetParameters(t, "observe"))
	others := namespace(t, "observed")
	created(t, pod(others, "", pipe), pod(others, "", `\\.\pipe`))
	if got := effects(t, others); !slices.Contains(got, "audit") || slices.Contains(got, "deny") {
		t.Errorf("effects %q", got)
	}
	refused(t, at(t).api.Client.Create(t.Context(), pod(others, "", admission.NeverAllowedPath)), "PG003")
	rescanned(t, "observe")
	eventually(t, "the scan reports it as what was recorded", func(ctx context.Context) error {
		list := &v1alpha1.PipeReportList{}
		if err := at(t).api.Client.List(ctx, list, client.InNamespace(others)); err != nil {
			return err
		}
		for _, report := range list.Items {
			if slices.ContainsFunc(report.Results, func(r v1alpha1.ReportResult) bool { return r.Rule == "PG001" && r.Effect == "audit" }) {
				return nil
			}
		}
		return fmt.Errorf("none of %d reports has a PG001 with the effect audit", len(list.Items))
	})
}

func TestThePresetStrictIsForSubjectsAlone(t *testing.T) {
	standalone(t, presetParameters(t, "strict"))
	others := namespace(t, "others", driver)
	if err := at(t).api.EnsureNamespace(t.Context(), drivers, driver); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{pod(others, driver, pipe), privilegedPod(others, pipe), privilegedPod(drivers, pipe)} {
		refused(t, at(t).api.Client.Create(t.Context(), o), "PG001")
	}
	refused(t, at(t).api.Client.Create(t.Context(), pod(others, "", `C:\Windows`)), "PG008")
	refused(t, at(t).api.Client.Create(t.Context(), pod(others, "", `C:\var\lib\kubelet`)), "PG011")
	host := pod(others, "")
	hostProcess(&host.Spec)
	refused(t, at(t).api.Client.Create(t.Context(), host), "PG005")
	created(t, pod(others, "", `C:\app`))
}
