package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

func TestObjectsThatWouldKeepACoreBusyAreRefused(t *testing.T) {
	long := strings.Repeat(`\x`, 100_000)
	repeat := func(n int, entry string) string { return strings.TrimSuffix(strings.Repeat(entry+",", n), ",") }
	volumes := func(entries string) string { return `"volumes":[` + entries + `]` }
	mounts := func(entries string) string { return `"containers":[{"name":"c","volumeMounts":[` + entries + `]}]` }
	r, n := newReviewer(t, DefaultParameters()), 0
	specs := map[string]string{
		"a long path, mounted ten thousand times": volumes(`{"name":"v","hostPath":{"path":`+string(marshal(t, long))+`}}`) + "," +
			mounts(repeat(9_999, `{"name":"v"}`)),
		"a long path, mounted with as many subPaths": volumes(`{"name":"v","hostPath":{"path":`+string(marshal(t, long))+`}}`) + "," +
			mounts(repeat(9_999, `{"name":"v","subPath":"s"}`)),
		"thousands of volumes and mounts of one name": volumes(repeat(9_999, `{"name":"v","hostPath":{"path":"\\\\.\\"}}`)) + "," +
			mounts(repeat(9_999, `{"name":"v"}`)),
		"thousands of volumes and mounts of other names": volumes(repeat(9_999, `{"name":"v","hostPath":{"path":"x"}}`)) + "," +
			mounts(repeat(9_999, `{"name":"w"}`)),
		"a hundred thousand containers": volumes(`{"name":"v","hostPath":{"path":"x"}}`) + `,"containers":[` + repeat(100_000, `{}`) + `]`,
		"a path of 2.5 million bytes":   volumes(`{"name":"v","hostPath":{"path":"` + strings.Repeat("x", 2_500_000) + `"}}`),
	}
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		spec := specs[name]
		t.Run(name, func(t *testing.T) {
			n++
			for i, kind := range holders() {
				if kind.Kind != "Pod" && i%3 != n%3 { // each kind meets some of them, and a pod all
					continue
				}
				object := map[string]any{"spec": json.RawMessage(`{` + spec + `}`)}
				if path := templatePaths[kind.Kind]; path != "" {
					keys := strings.Split(path, ".")
					for i := len(keys) - 1; i >= 0; i-- {
						object = map[string]any{keys[i]: object}
					}
				}
				object["apiVersion"], object["kind"] = apiVersionOf(kind), kind.Kind
				_, answer := post(t, r, []byte(reviewOf(kind, string(marshal(t, object)))))
				if answer == nil || answer.Allowed || !strings.HasPrefix(answer.Result.Message, CodeFailure) {
					t.Fatalf("%s: answer %+v", kind.Kind, answer)
				}
			}
		})
	}
}

// Each policy that governs a mount is an entry of the input and of a loop in Rego, so that they count as work.
func TestThousandMountsThatThousandPoliciesGovernAreRefused(t *testing.T) {
	p := Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{}}
	for i := range 1000 {
		p.PipePolicies[fmt.Sprint("p", i)] = PipePolicy{Pipes: []string{"csi-proxy*"}}
	}
	scope := testScope(t, p)
	for mounts, want := range map[int]error{9: nil, 1000: errTooMuchWork} {
		pod := testPod(csiPipe)
		for len(pod.Spec.Containers[0].VolumeMounts) < mounts {
			pod.Spec.Containers[0].VolumeMounts = append(pod.Spec.Containers[0].VolumeMounts, pod.Spec.Containers[0].VolumeMounts[0])
		}
		obj, err := readObject(marshal(t, pod), podKind, plenty())
		if err != nil {
			t.Fatal(err)
		}
		if e, err := extract(scope, &obj, plenty()); !errors.Is(err, want) {
			t.Errorf("%d mounts: %d, %v", mounts, len(e.mounts), err)
		}
	}
}

// A path is judged with each of its mounts. What that takes is known, and taken from what a review may take, before the first is judged: without a scope none can be.
func TestTheWorkOfPathsIsTakenBeforeAnyIsJudged(t *testing.T) {
	for name, tt := range map[string]struct {
		path    string
		mounts  int
		subPath string
		light   error // of a light review
		heavy   error
	}{
		"a long path, mounted often":            {`C:\` + strings.Repeat(`a\`, 10_000), 500, "", errTooMuchWork, errTooMuchWork},
		"a long path, mounted a hundred times":  {strings.Repeat("/a", 10_000), 90, "", jsonscan.ErrAllowance, nil},
		"long subPaths":                         {`C:\a`, 300, strings.Repeat("a/", 100), jsonscan.ErrAllowance, nil},
		"a share with a long path":              {`\\h\s` + strings.Repeat(`\a`, 8_000), 9, "s", jsonscan.ErrAllowance, nil},
		"a path of ordinary length, many times": {`/var/lib/storage/plugins/driver.example`, 200, "sub/path", nil, nil},
	} {
		pod := testPod(tt.path)
		m := pod.Spec.Containers[0].VolumeMounts[0]
		m.SubPath = tt.subPath
		pod.Spec.Containers[0].VolumeMounts = slices.Repeat([]corev1.VolumeMount{m}, tt.mounts)
		obj, err := readObject(marshal(t, pod), podKind, plenty())
		if err != nil {
			t.Fatal(err)
		}
		full := testScope(t, Policies{Parameters: DefaultParameters()})
		scopeFor := func(want error) *Scope {
			if want != nil {
				return nil
			}
			return full
		}
		if _, err := extract(scopeFor(tt.light), &obj, jsonscan.Allow(lightReview)); !errors.Is(err, tt.light) {
			t.Errorf("%s: a light review: %v, want %v", name, err, tt.light)
		}
		if _, err := extract(scopeFor(tt.heavy), &obj, plenty()); !errors.Is(err, tt.heavy) {
			t.Errorf("%s: a heavy review: %v, want %v", name, err, tt.heavy)
		}
	}
}
