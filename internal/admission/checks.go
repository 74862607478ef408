package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/pipepath"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// driverNamespace is where the checks' driver lives; which it is does not matter, as the checks bring their own data.
const driverNamespace = "kube-system"

// Checks are the invariants that policies must hold before they are activated, whoever wrote them and whatever their
// own tests say. They go into policy.Options.Checks.
func Checks(guard *pipepath.Guard) []policy.Check {
	pipe := `\\.\pipe\` + guardedName(guard)
	canary := checkInput(guard, canaryNamespace, pod("canary", pipe))
	driver := checkInput(guard, driverNamespace, pod("driver", pipe))

	parameters := DefaultParameters()
	parameters.AllowedNamespaces = map[string]Subjects{driverNamespace: {}}
	allowing := parameters.Data()
	broken := parameters.Data()
	broken["pipeguard"] = map[string]any{"parameters": "not a mapping"}

	checks := []policy.Check{
		{Name: "a guarded pipe is refused where nobody is allowed", Input: canary, Want: wantDenied},
		{Name: "an evasive spelling of it is refused", Want: wantDenied,
			Input: checkInput(guard, canaryNamespace, pod("canary", `//?/GLOBALROOT/Device/NamedPipe/`+guardedName(guard)))},
		{Name: "the directory of all pipes is refused even in an allowed namespace", Data: allowing, Want: wantDenied,
			Input: checkInput(guard, driverNamespace, pod("canary", `\\.\pipe\`))},
		{Name: "a guarded pipe that is declared and not mounted is refused", Want: wantDenied,
			Input: checkInput(guard, canaryNamespace, unmounted(pod("canary", pipe)))},
		{Name: "without data a guarded pipe is refused", Input: driver, Data: map[string]any{}, Want: wantDenied},
		{Name: "with malformed data a guarded pipe is refused", Input: driver, Data: broken, Want: wantDenied},
		{Name: "a driver in an allowed namespace is admitted", Input: driver, Data: allowing, Want: wantAllowed},
		{Name: "the same driver in another namespace is refused", Data: allowing, Want: wantDenied,
			Input: checkInput(guard, canaryNamespace, pod("driver", pipe))},
	}
	for i := range checks {
		checks[i].Name = "built-in: " + checks[i].Name
	}
	return checks
}

func wantDenied(d policy.Decision) error {
	if d.Allowed && len(denials(d)) == 0 {
		return errors.New("it was admitted")
	}
	return nil
}

func wantAllowed(d policy.Decision) error {
	if denied := denials(d); len(denied) > 0 {
		return fmt.Errorf("it was refused with %s at %q", code(denied[0]), denied[0].Field)
	}
	if !d.Allowed {
		return errors.New("it was refused without a finding")
	}
	return nil
}

// checkInput extracts the input of a Pod that is created, the same way as for a request.
func checkInput(guard *pipepath.Guard, namespace string, object map[string]any) any {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(fmt.Errorf("encode the object of a check: %w", err)) // it consists of maps and strings
	}
	kind := metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	obj, err := readObject(raw, kind)
	if err != nil {
		panic(fmt.Errorf("read the object of a check: %w", err)) // the same constants in every process
	}
	e, err := extract(guard, &obj)
	if err != nil {
		panic(fmt.Errorf("extract the input of a check: %w", err)) // the same constants in every process
	}
	r := &Reviewer{now: func() time.Time { return time.Unix(0, 0) }}
	req := &admissionv1.AdmissionRequest{Kind: kind, Namespace: namespace, Operation: admissionv1.Create}
	return r.input(req, &obj, &e).value(nil)
}

// unmounted takes the mount from a pod of this package's making.
func unmounted(p map[string]any) map[string]any {
	if spec, ok := p["spec"].(map[string]any); ok {
		spec["containers"] = []any{map[string]any{"name": "canary", "image": "example.com/canary"}}
	}
	return p
}
