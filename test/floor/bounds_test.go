package floor

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	product "github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// sized is a pod with so many of everything; the paths of its volumes have so many characters, and each mount a subPath.
func sized(volumes, containers, mounts, length int, path, subPath string) *request {
	p := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "shop", CreationTimestamp: metav1.NewTime(now)}}
	for i := range volumes {
		text := fmt.Sprintf("%s%d", path, i)
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", i), VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: text + strings.Repeat("x", max(0, length-len(text)))}}})
	}
	left := mounts
	for i := range containers {
		c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "registry.example/driver:v1"}
		for j := range min(left, (mounts+containers-1)/containers) {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: fmt.Sprintf("v%d", (i+j)%max(volumes, 1)), MountPath: fmt.Sprintf("/m%d", j), SubPath: subPath})
			left--
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return &request{kind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, resource: "pods", object: p, operation: admission.Create, namespace: "shop"}
}

// strict are the parameters with which a floor looks at most.
func strict() product.Policies {
	p := product.DefaultParameters()
	p.HostProcess, p.EqualPower, p.HostPaths = product.ActionDeny, product.ActionDeny, product.ActionDeny
	return product.Policies{Parameters: p}
}

// governed are policies for the same pipes with so many subjects of one namespace each. The last one permits; all before it have to be looked at.
func governed(many, subjects int) product.Policies {
	p := strict()
	p.PipePolicies = map[string]product.PipePolicy{}
	last := &access.Subject{}
	for i := range many {
		var all []access.Subject
		for j := range subjects {
			all = append(all, access.Subject{Name: fmt.Sprintf("s%d", j), Namespace: "shop", ServiceAccounts: []string{"default"}, Images: []string{fmt.Sprintf("registry.example/driver%d/*", j)}})
		}
		p.PipePolicies[fmt.Sprintf("driver%d", i)] = product.PipePolicy{Pipes: []string{"csi-proxy*"}, Subjects: all}
		last = &all[len(all)-1]
	}
	last.Images = nil
	return p
}

// An object that is not too large costs at most half of what it may, of its budget and in each expression; one that is too large is refused for that, and not because the API server
// gave up.
func TestTheLargestObjectsCostHalfOfTheBudget(t *testing.T) {
	for name, p := range map[string]product.Policies{"default": {Parameters: product.DefaultParameters()}, "strict": strict(), "governed": governed(4, 8), "much governed": governed(8, 100)} {
		made, err := floor.New(floor.Options{Name: "floor", Policies: p})
		if err != nil {
			t.Fatal(err)
		}
		j := newJudge(t, made)
		for what, r := range map[string]*request{
			"plain paths":            sized(400, 1, 0, 30, "/data/", ""),
			"long plain paths":       sized(400, 1, 0, 256, "/data/", ""),
			"mounts with subPaths":   sized(400, 400, 1000, 30, "/data/", strings.Repeat("s", 256)),
			"mounts with odd ones":   sized(400, 400, 1000, 30, "/data/", strings.Repeat("s", 250)+`/..`),
			"as many pipes as fit":   sized(32, 400, 1000, 30, `\\.\pipe\csi-proxy`, ""),
			"a driver":               sized(16, 2, 32, 30, `\\.\pipe\csi-proxy`, ""),
			"other pipes":            sized(32, 400, 1000, 30, `\\.\pipe\other`, ""),
			"guarded directories":    sized(32, 400, 1000, 30, `C:\ProgramData\`, "x"),
			"too many pipes":         sized(33, 1, 33, 30, `\\.\pipe\csi-proxy`, ""),
			"too many volumes":       sized(401, 1, 0, 30, "/data/", ""),
			"too many containers":    sized(1, 401, 0, 30, "/data/", ""),
			"too many mounts":        sized(400, 400, 1200, 30, "/data/", ""),
			"five thousand volumes":  sized(5000, 1, 0, 100, "/data/", ""),
			"ten thousand of a kind": sized(10000, 10000, 20000, 200, `\\.\pipe\csi-proxy`, "x"),
		} {
			v := j.ask(t, r)
			t.Logf("%s, %s: cost %d, conditions %d, allowed %t", name, what, v.cost, v.conditions, v.allowed)
			if v.failed || v.cost > celconfig.RuntimeCELCostBudget/2 || v.conditions > celconfig.RuntimeCELCostBudgetMatchConditions/2 {
				t.Errorf("%s, %s: cost %d of %d, conditions %d, %q", name, what, v.cost, celconfig.RuntimeCELCostBudget, v.conditions, v.messages)
			}
			if strings.HasPrefix(what, "too many") || strings.Contains(what, "thousand") || name == "much governed" && (what == "as many pipes as fit" || what == "other pipes") {
				if v.allowed || !strings.Contains(strings.Join(v.messages, "\n"), "the floor looks at no more") {
					t.Errorf("%s, %s: allowed %t, %q", name, what, v.allowed, v.messages)
				}
			}
			if want := strings.Contains(name, "governed"); what == "a driver" && v.allowed != want {
				t.Errorf("%s, %s: allowed %t, %q", name, what, v.allowed, v.messages)
			}
		}
	}
}
