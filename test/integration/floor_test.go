//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/floor"
	"github.com/pipeguard/pipeguard/test/harness"
	"github.com/pipeguard/pipeguard/test/integration/cluster"
	"github.com/pipeguard/pipeguard/test/routes"
)

// floorName is the name that the webhook gives its floor if its configuration has none.
const floorName = "pipeguard-floor"

// replaced ends the release's one replica and starts one with other arguments.
func replaced(t *testing.T, release *cluster.Release, args ...string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for len(release.Replicas) > 0 {
		if err := release.StopReplica(ctx, release.Replicas[0]); err != nil {
			t.Fatal(err)
		}
	}
	replica, err := release.AddReplica(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	if err := replica.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
}

// floored gives the site's release a floor for the time of a test.
func floored(t *testing.T) *cluster.Release {
	t.Helper()
	ungoverned(t)
	release := guarded(t)
	config := filepath.Join(t.TempDir(), "webhook.yaml")
	if err := cluster.WriteWebhookConfig(config, "floor: {mode: Always}"); err != nil {
		t.Fatal(err)
	}
	replaced(t, release, "--config", config)
	t.Cleanup(func() {
		replaced(t, release) // its mode is Off
		harness.Eventually(t, limit, "there is no floor", func(ctx context.Context) error {
			for _, o := range floor.Empty(floorName) {
				if err := at(t).api.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s: %w", o.GetName(), errors.Join(err, errors.New("still there")))
				}
			}
			return nil
		})
	})
	stands(t)
	return release
}

// stands waits until the floor is that of a revision that decides, and holds.
func stands(t *testing.T) {
	t.Helper()
	eventually(t, "the floor stands", func(ctx context.Context) error {
		now, err := revision(ctx, guarded(t).Replicas[0])
		if err != nil {
			return err
		}
		for _, o := range floor.Empty(floorName) {
			if err := at(t).api.Client.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			if got := o.GetAnnotations()[floor.RevisionAnnotation]; got != now {
				return fmt.Errorf("%T %s has revision %q, and %s decides", o, o.GetName(), got, now)
			}
		}
		return nil
	})
	eventually(t, "the floor holds", func(ctx context.Context) error {
		for _, o := range []client.Object{pod(drivers, "", pipe), volume(routes.OnHost(pipe))} {
			if err := at(t).api.Client.Create(ctx, o, client.DryRunAll); !isFloored(err) {
				return fmt.Errorf("%T: %w", o, errors.Join(err, errors.New("not refused by the floor")))
			}
		}
		return nil
	})
}

// unasked does something while the API server asks no webhook about objects. The floor refuses first, so that the webhook is known by its warnings alone.
func unasked(t *testing.T, release *cluster.Release, do func()) {
	t.Helper()
	probe, warned := warnings(t)
	ask := func(want bool) func(context.Context) error {
		return func(ctx context.Context) error {
			warned.texts = nil
			o := pod(drivers, "")
			hostProcess(&o.Spec)
			if err := probe.Create(ctx, o, client.DryRunAll); err != nil {
				return err
			}
			if got := strings.Contains(strings.Join(warned.texts, " "), "PG005"); got != want {
				return fmt.Errorf("warnings: %q", warned.texts)
			}
			return nil
		}
	}
	eventually(t, "the webhook is asked", ask(true))
	var c admissionregistrationv1.ValidatingWebhookConfiguration
	c.Name = cluster.ObjectConfiguration
	if err := at(t).api.Client.Delete(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release.Resume(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "the webhook is asked no more", ask(false))
	do()
}

// isFloored says whether an answer is a refusal by the floor.
func isFloored(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "ValidatingAdmissionPolicy '"+floorName) && strings.Contains(err.Error(), "Pipeguard's floor refuses it.")
}

func TestTheFloorHoldsWithoutTheWebhook(t *testing.T) {
	release := floored(t)
	measured(t, release.Replicas[0], `pipeguard_api_canary{answer="refused"} 1`) // by the webhook, although the floor is asked first
	mine := namespace(t, "mine", driver)
	unasked(t, release, func() {
		t.Run("no pipe is open over all vectors and routes", noPipeIsOpen)
		t.Run("permitted pods and harmless ones start", func(t *testing.T) {
			for name, o := range map[string]client.Object{
				"a driver": pod(drivers, driver, pipe),
				"a pod of Linux": func() client.Object {
					p := pod(mine, "", `/odd ../path`)
					p.Spec.OS = &corev1.PodOS{Name: corev1.Linux}
					return p
				}(),
				"one that does not say":   pod(mine, "", "/var/lib/data", "/etc/ssl", "/"),
				"a pod of Windows":        pod(mine, "", `C:\app\data`, `D:\logs`),
				"a HostProcess container": func() client.Object { p := pod(mine, ""); hostProcess(&p.Spec); return p }(),
			} {
				if err := at(t).api.Client.Create(t.Context(), o, client.DryRunAll); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, w := range routes.Workloads() {
				if err := at(t).api.Client.Create(t.Context(), named(w.Make(template(driver, pipe)), drivers), client.DryRunAll); err != nil {
					t.Errorf("%s of a driver: %v", w.Kind, err)
				}
			}
		})
		t.Run("policies reach the floor", func(t *testing.T) {
			p := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
			ready(t, p)
			become(t, p, v1alpha1.ConditionInFloor, metav1.ConditionTrue)
			stands(t)
			eventually(t, "the subject is admitted", func(ctx context.Context) error {
				return at(t).api.Client.Create(ctx, pod(mine, driver, diskPipe), client.DryRunAll)
			})
			eventually(t, "an allowed namespace no longer counts", func(ctx context.Context) error {
				if err := at(t).api.Client.Create(ctx, pod(drivers, driver, diskPipe), client.DryRunAll); !isFloored(err) {
					return fmt.Errorf("not refused: %w", err)
				}
				return nil
			})
			m := module("other", map[string]string{"other.rego": "package pipeguard.admission\n", "other_test.rego": "package pipeguard.admission_test\n\ntest_other if true\n"})
			ready(t, m)
			become(t, m, v1alpha1.ConditionInFloor, metav1.ConditionFalse)
		})
	})
	t.Run("what others do to it is undone", floorIsPutBack)
}

// hostProcess makes a specification that of a HostProcess container.
func hostProcess(s *corev1.PodSpec) {
	s.HostNetwork = true
	s.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true), RunAsUserName: new(`NT AUTHORITY\SYSTEM`)}}
}

// repaired returns an error unless the leader has put the floor back so often: each harm once, and nothing of what it wrote itself.
func repaired(ctx context.Context, r *cluster.Replica, want int) error {
	text, err := r.Metrics(ctx)
	if err != nil {
		return err
	}
	total := 0
	for line := range strings.Lines(text) {
		var n int
		if at := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, "pipeguard_floor_repairs_total{") {
			if _, err := fmt.Sscan(line[at:], &n); err != nil {
				return err
			}
			total += n
		}
	}
	if total != want {
		return fmt.Errorf("the floor was put back %d times, want %d", total, want)
	}
	return nil
}

func noPipeIsOpen(t *testing.T) {
	all := routes.Openings(t, drivers)
	refusedByFloor := 0
	for _, o := range all {
		err := at(t).api.Client.Create(t.Context(), o.Object, client.DryRunAll)
		if err == nil {
			t.Errorf("OPEN: %T with %q, %q is admitted", o.Object, o.HostPath, o.SubPath)
		} else if isFloored(err) {
			refusedByFloor++
		} else if !apierrors.IsInvalid(err) { // nobody could store it
			t.Errorf("%T with %q, %q: %v", o.Object, o.HostPath, o.SubPath, err)
		}
	}
	if refusedByFloor < len(all)*3/4 {
		t.Errorf("%d tried, the floor refused %d", len(all), refusedByFloor)
	}
}

func floorIsPutBack(t *testing.T) {
	api := at(t).api.Client
	release := guarded(t)
	eventually(t, "nothing was put back so far", func(ctx context.Context) error {
		return repaired(ctx, release.Replicas[0], 0)
	})
	begun, harms := time.Now(), 0
	defer func() {
		t.Logf("%d harms in %v", harms, time.Since(begun).Round(time.Second))
		if err := repaired(t.Context(), release.Replicas[0], harms); err != nil {
			t.Error(err)
		}
	}()
	key := client.ObjectKey{Name: floorName}
	for name, harm := range map[string]func(context.Context) error{
		"a policy is deleted": func(ctx context.Context) error {
			return api.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: floorName}})
		},
		"a binding is deleted": func(ctx context.Context) error {
			return api.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: floorName}})
		},
		"a namespace is left out": func(ctx context.Context) error {
			var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
			if err := api.Get(ctx, key, &b); err != nil {
				return err
			}
			b.Spec.MatchResources = &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"x": "y"}}}
			return api.Update(ctx, &b)
		},
		"it only warns": func(ctx context.Context) error {
			var b admissionregistrationv1.ValidatingAdmissionPolicyBinding
			if err := api.Get(ctx, key, &b); err != nil {
				return err
			}
			b.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Warn}
			return api.Update(ctx, &b)
		},
		"a validation always holds": func(ctx context.Context) error {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := api.Get(ctx, key, &p); err != nil {
				return err
			}
			for i := range p.Spec.Validations {
				p.Spec.Validations[i].Expression = "true"
			}
			return api.Update(ctx, &p)
		},
		"a failing expression lets pass": func(ctx context.Context) error {
			var p admissionregistrationv1.ValidatingAdmissionPolicy
			if err := api.Get(ctx, key, &p); err != nil {
				return err
			}
			p.Spec.FailurePolicy = new(admissionregistrationv1.Ignore)
			return api.Update(ctx, &p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var was admissionregistrationv1.ValidatingAdmissionPolicy
			var bound admissionregistrationv1.ValidatingAdmissionPolicyBinding
			if err := errors.Join(api.Get(t.Context(), key, &was), api.Get(t.Context(), key, &bound)); err != nil {
				t.Fatal(err)
			}
			if err := harm(t.Context()); err != nil {
				t.Fatal(err)
			}
			harms++
			begun := time.Now()
			eventually(t, "it is put back", func(ctx context.Context) error {
				var now admissionregistrationv1.ValidatingAdmissionPolicy
				var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
				if err := errors.Join(api.Get(ctx, key, &now), api.Get(ctx, key, &binding)); err != nil {
					return err
				}
				if !floor.SameSpec(&was, &now) || !floor.SameSpec(&bound, &binding) {
					return errors.New("it is as it was changed")
				}
				return nil
			})
			t.Logf("put back within %v", time.Since(begun).Round(time.Millisecond))
			stands(t)
		})
	}
}
