//go:build !windows

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// latest refuses images by their ending, which is a parameter.
const latest = `package pipeguard.admission

# METADATA
# title: An image has no version
# custom:
#   code: SHOP001
#   severity: low
#   docs: https://example.com/shop001
#   remedy: Name a version.
findings contains {"code": "SHOP001", "effect": "deny", "field": container.field} if {
	some container in input.containers
	endswith(container.image, data.pipeguard.modules.latest.ending)
}
`

const latestTest = `package pipeguard.admission_test

test_latest_is_refused if {
	found := data.pipeguard.admission.findings with input.containers as [{"image": "web:latest", "field": "f", "hostProcess": false}]
		with data.pipeguard.modules.latest.ending as ":latest"
	some finding in found
	finding.code == "SHOP001"
}
`

func latestModule() *v1alpha1.PolicyModule {
	m := module("latest", map[string]string{"latest.rego": latest, "latest_test.rego": latestTest})
	m.Spec.Parameters = parametersOf(`{"ending": ":latest"}`)
	return m
}

func TestAPolicyModuleDecidesOnceItIsReady(t *testing.T) {
	ungoverned(t)
	m := latestModule()
	status := ready(t, m)
	if status.Replicas.Summary != "1/1" {
		t.Errorf("status: %+v", status)
	}
	p := pod(drivers, driver, pipe)
	p.Spec.Containers[0].Image = "example.com/app:latest"
	answer := refused(t, at(t).api.Client.Create(t.Context(), p), "SHOP001")
	for _, want := range []string{"An image has no version", "Name a version.", "https://example.com/shop001"} {
		if !strings.Contains(answer.Message, want) {
			t.Errorf("the refusal lacks %q:\n%s", want, answer.Message)
		}
	}
	created(t, pod(drivers, driver, pipe))

	// A change of a parameter is another revision.
	changed(t, m, func() { m.Spec.Parameters = parametersOf(`{"ending": ":v1"}`) })
	if next := become(t, m, v1alpha1.ConditionReady, metav1.ConditionTrue); next.Revision == status.Revision || next.ObservedGeneration != 2 {
		t.Errorf("status %+v after %+v", next, status)
	}
	refused(t, at(t).api.Client.Create(t.Context(), pod(drivers, driver, pipe)), "SHOP001")
}

// broken are modules that must never decide.
func broken() map[string]struct {
	files map[string]string
	field string // where the author hears of it; "" if nowhere in particular
	text  string
} {
	all := map[string]struct {
		files map[string]string
		field string
		text  string
	}{
		"does not parse": {map[string]string{"rules.rego": "package pipeguard.admission\n\nfindings contains x if {\n"},
			"spec.modules[0].rego", "rules.rego:4:1: rego_parse_error"},
		"is of a wrong type": {map[string]string{"rules.rego": "package pipeguard.admission\n\nfindings contains {\"code\": x} if x := count(1)\n"},
			"spec.modules[0].rego", "rules.rego:3:39: rego_type_error"},
		"calls what may not be called": {map[string]string{"rules.rego": "package pipeguard.admission\n\nfindings contains x if x := http.send({\"url\": \"https://example.com\", \"method\": \"get\"})\n"},
			"spec.modules[0].rego", "rules.rego:3:29: builtin"},
		"uses what is not there": {map[string]string{"rules.rego": "package pipeguard.admission\n\nfindings contains x if x == y\n"},
			"spec.modules[0].rego", "rules.rego:3:"},
		"fails its own test": {map[string]string{"a_test.rego": "package pipeguard.admission_test\n\ntest_numbers if 1 == 2\n"},
			"spec.modules[0].rego", "a_test.rego:3: test"},
		"opens everything":                    {map[string]string{"rules.rego": "package pipeguard.admission\n\nnamespace_suffices if true\n"}, "", ""},
		"opens everything, in another manner": {map[string]string{"rules.rego": "package pipeguard.admission\n\nallowed if true\n"}, "", ""},
	}
	for _, c := range all {
		c.files["tests_test.rego"] = "package pipeguard.admission_test\n\ntest_something if 1 == 1\n"
	}
	all["has no test"] = struct {
		files map[string]string
		field string
		text  string
	}{map[string]string{"latest.rego": latest}, "spec.modules", "_test.rego"}
	return all
}

func TestModulesThatAreUnfitAreRefusedWithTheirPlaces(t *testing.T) {
	ungoverned(t)
	good := latestModule()
	ready(t, good)
	for name, c := range broken() {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{
				"create": at(t).api.Client.Create(t.Context(), module("unfit", c.files)),
				"update": func() error {
					m := latestModule()
					if err := at(t).api.Client.Get(t.Context(), client.ObjectKeyFromObject(good), m); err != nil {
						return err
					}
					m.Spec.Modules = module("", c.files).Spec.Modules
					return at(t).api.Client.Update(t.Context(), m)
				}(),
			} {
				status, ok := errors.AsType[*apierrors.StatusError](err)
				if !ok || !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `admission webhook "policies.pipeguard.dev" denied the request: `) {
					t.Errorf("%s: %v", what, err)
					continue
				}
				if !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: the answer lacks %q: %v", what, c.text, err)
				}
				var fields []string
				for _, cause := range status.ErrStatus.Details.Causes {
					fields = append(fields, cause.Field)
				}
				if c.field != "" && (len(fields) == 0 || fields[0] != c.field) {
					t.Errorf("%s: fields %q, want %s", what, fields, c.field)
				}
			}
		})
	}
	become(t, good, v1alpha1.ConditionReady, metav1.ConditionTrue)
}

// unchecked lets policy objects be stored that nobody has judged, as when the webhook did not answer and the
// configuration was taken away.
func unchecked(t *testing.T, do func()) {
	t.Helper()
	release := guarded(t)
	bad := module("probe", map[string]string{"probe.rego": "package"})
	if err := release.SuspendPolicies(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "policy objects are not judged", func(ctx context.Context) error {
		return at(t).api.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll)
	})
	defer func() {
		if err := release.ResumePolicies(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		eventually(t, "policy objects are judged", func(ctx context.Context) error {
			if err := at(t).api.Client.Create(ctx, bad.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) {
				return fmt.Errorf("got %w", err)
			}
			return nil
		})
	}()
	do()
}

func TestWhatSlipsInDoesNotDecide(t *testing.T) {
	ungoverned(t)
	mine := namespace(t, "mine", driver)
	good := pipePolicy("disk", []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, subject(mine))
	before := ready(t, good)
	release := guarded(t)
	bad := module("slipped", broken()["is of a wrong type"].files)
	unchecked(t, func() { created(t, bad) })

	become(t, bad, v1alpha1.ConditionReady, metav1.ConditionFalse)
	become(t, bad, v1alpha1.ConditionCompiled, metav1.ConditionFalse)
	if len(bad.Status.Problems) != 1 {
		t.Fatalf("problems: %+v", bad.Status.Problems)
	}
	p := bad.Status.Problems[0]
	if diff := cmp.Diff(v1alpha1.Problem{File: "rules.rego", Line: 3, Column: 39, Code: "rego_type_error", Message: p.Message}, p); diff != "" {
		t.Errorf("problem (-want +got):\n%s", diff)
	}
	if bad.Status.Replicas.Current != 0 || bad.Status.Replicas.Live != 1 {
		t.Errorf("replicas: %+v", bad.Status.Replicas)
	}
	happened(t, bad, "Refused", "rules.rego:3:39")

	// What was there goes on deciding, and says so.
	now, err := revision(t.Context(), release.Replicas[0])
	if err != nil || now != before.Revision {
		t.Errorf("it decides by %s, not by %s: %v", now, before.Revision, err)
	}
	if after := become(t, good, v1alpha1.ConditionReady, metav1.ConditionTrue); after.Revision != before.Revision {
		t.Errorf("status: %+v", after)
	}
	created(t, pod(mine, driver, diskPipe))
	refused(t, at(t).api.Client.Create(t.Context(), pod(drivers, driver, diskPipe)), "PG010")

	// Repaired, it decides. The webhook admits the repair although it is the repair of what it would refuse.
	changed(t, bad, func() {
		bad.Spec = latestModule().Spec
		for i := range bad.Spec.Modules {
			rego := &bad.Spec.Modules[i].Rego
			*rego = strings.ReplaceAll(*rego, "modules.latest.ending", "modules.slipped.ending")
		}
	})
	if after := become(t, bad, v1alpha1.ConditionReady, metav1.ConditionTrue); after.Revision == before.Revision {
		t.Errorf("status: %+v", after)
	}
	if len(bad.Status.Problems) != 0 {
		t.Errorf("problems: %+v", bad.Status.Problems)
	}
}
