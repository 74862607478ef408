package floor

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	product "github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/floor"
)

// A subject within the bounds of the API that is too large for a floor is left out, and other drivers start.
func TestASubjectThatIsTooLargeIsLeftOut(t *testing.T) {
	p := product.Policies{Parameters: product.DefaultParameters(), PipePolicies: map[string]product.PipePolicy{
		"driver": {Pipes: []string{"csi-proxy*"}, Subjects: []access.Subject{{Name: "driver", Namespace: "shop", ServiceAccounts: []string{"default"}}}},
	}}
	s := access.Subject{Name: "x", Namespace: "tenant", ServiceAccounts: []string{"x"}}
	for i := range 64 {
		s.HostPaths = append(s.HostPaths, fmt.Sprintf(`D:\%d`, i)+strings.Repeat("+", 1000))
	}
	p.PipePolicies["tenant"] = product.PipePolicy{Subjects: []access.Subject{s}}
	made, err := floor.New(floor.Options{Name: "floor", Policies: p})
	if err != nil {
		t.Fatal(err)
	}
	if len(made.LeftOut) != 1 || made.LeftOut[0] != "tenant" {
		t.Errorf("left out: %q", made.LeftOut)
	}
	r := sized(1, 1, 1, 0, `\\.\pipe\csi-proxy-disk-v`, "")
	if v := newJudge(t, made).ask(t, r); !v.allowed {
		t.Errorf("a driver that a policy permits: %q", v.messages)
	}
}

// With patterns by the ten thousand, an object that asks for many pipes is refused for that, and not because the API server gave up.
func TestManyPatternsBoundHowManyPipesAnObjectMayHave(t *testing.T) {
	for _, many := range []int{10, 60, 100} {
		p := product.Policies{Parameters: product.DefaultParameters(), PipePolicies: map[string]product.PipePolicy{
			"driver": {Pipes: []string{"csi-proxy*"}, Subjects: []access.Subject{{Name: "driver", Namespace: "shop", ServiceAccounts: []string{"default"}}}},
		}}
		for i := range many {
			o := product.PipePolicy{Subjects: []access.Subject{{Name: "x", Namespace: "tenant", ServiceAccounts: []string{"x"}}}}
			for j := range 64 {
				o.Pipes = append(o.Pipes, fmt.Sprintf("z%d-%d*", i, j))
			}
			p.PipePolicies[fmt.Sprintf("tenant%d", i)] = o
		}
		made, err := floor.New(floor.Options{Name: "floor", Policies: p})
		if err != nil {
			t.Fatal(err)
		}
		j, fit := newJudge(t, made), 0
		for _, pipes := range []int{1, 4, 6, 10, 16, 32} {
			v := j.ask(t, sized(pipes, 1, pipes, 0, `\\.\pipe\csi-proxy-disk-v`, ""))
			if v.failed || !v.allowed && !strings.Contains(v.messages[0], "the floor looks at no more") {
				t.Errorf("%d policies, %d pipes: %.300q", many, pipes, v.messages)
			}
			if v.allowed {
				fit = pipes
			}
			t.Logf("%d policies, %d pipes: allowed %t, cost %d", many, pipes, v.allowed, v.cost)
		}
		if want := map[int]int{10: 32, 60: 10, 100: 6}[many]; fit != want {
			t.Errorf("with %d policies, %d pipes fit; want %d", many, fit, want)
		}
	}
}

// A floor of the largest size is compiled: its lists are in pieces, which are added in halves.
func TestAFloorOfTheLargestSizeIsCompiled(t *testing.T) {
	p := product.Policies{Parameters: product.DefaultParameters(), PipePolicies: map[string]product.PipePolicy{}}
	made, subjects := (*floor.Floor)(nil), 0
	for made == nil || len(made.LeftOut) == 0 {
		for range 5 {
			var all []access.Subject
			for range 100 {
				all = append(all, access.Subject{Name: fmt.Sprintf("s%d", subjects), Namespace: "shop", ServiceAccounts: []string{fmt.Sprintf("a%d", subjects)}, Images: []string{"registry.example/driver:*"}})
				subjects++
			}
			p.PipePolicies[fmt.Sprintf("p%d", subjects)] = product.PipePolicy{Pipes: []string{"csi-proxy*"}, Subjects: all}
		}
		var err error
		if made, err = floor.New(floor.Options{Name: "floor", Policies: p}); err != nil {
			t.Fatal(err)
		}
	}
	if subjects < 1000 || subjects > 9000 {
		t.Errorf("%d subjects are too many", subjects)
	}
	r := sized(1, 1, 1, 0, `\\.\pipe\csi-proxy-disk-v`, "")
	r.object.(*corev1.Pod).Spec.ServiceAccountName = "a7"
	if v := newJudge(t, made).ask(t, r); !v.allowed {
		t.Errorf("a driver: %.300q", v.messages)
	}
	t.Logf("up to %d subjects", subjects)
}

// One policy takes room from itself alone: whatever it says within the bounds of the API, the floor is compiled, and a driver of another policy with many containers starts.
func TestAPolicyTakesRoomFromNoOther(t *testing.T) {
	images := func(n int, format string) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf(format, i))
		}
		return all
	}
	many := func(n int, s access.Subject) (all []access.Subject) {
		for i := range n {
			s.Name = fmt.Sprintf("s%d", i)
			all = append(all, s)
		}
		return all
	}
	paths := images(64, `D:\%d`)
	for i := range paths {
		paths[i] += strings.Repeat("+", 560)
	}
	host := strict()
	for what, c := range map[string]struct {
		params   product.Parameters
		subjects []access.Subject
	}{
		"half a chunk each":           {product.DefaultParameters(), many(256, access.Subject{Namespace: "tenant", Images: images(64, "registry.example/a/very/long/name/x%d*")})},
		"images in the driver's":      {product.DefaultParameters(), many(140, access.Subject{Namespace: "shop", Images: images(64, "r/x%d*")})},
		"containers in the driver's":  {product.DefaultParameters(), many(140, access.Subject{Namespace: "shop", ServiceAccounts: []string{"default"}, Containers: images(64, "x%d")})},
		"directories in the driver's": {host.Parameters, many(4, access.Subject{Namespace: "shop", ServiceAccounts: []string{"default"}, HostPaths: paths})},
	} {
		t.Run(what, func(t *testing.T) {
			p := product.Policies{Parameters: c.params, PipePolicies: map[string]product.PipePolicy{
				"driver":  {Pipes: []string{"csi-proxy*"}, Subjects: []access.Subject{{Name: "driver", Namespace: "shop", ServiceAccounts: []string{"default"}, HostPaths: []string{`C:\var\lib\kubelet`}}}},
				"hostile": {Pipes: []string{"zz-mine"}, Subjects: c.subjects},
			}}
			made, err := floor.New(floor.Options{Name: "floor", Policies: p})
			if err != nil {
				t.Fatal(err)
			}
			if len(made.LeftOut) != 1 || made.LeftOut[0] != "hostile" {
				t.Errorf("left out: %q", made.LeftOut)
			}
			j := newJudge(t, made)
			for _, containers := range []int{1, 5, 16} {
				for _, path := range []string{`\\.\pipe\csi-proxy-disk-v`, `C:\var\lib\kubelet\`} {
					v := j.ask(t, sized(3, containers, 3*containers, 0, path, ""))
					t.Logf("%d containers, %s: cost %d", containers, path, v.cost)
					if !v.allowed {
						t.Errorf("%d containers, %s: %.300q", containers, path, v.messages)
					}
				}
			}
		})
	}
}

// Where mounts of pipes are only recorded and HostProcess containers refused, an object of which not every container is compared is refused too.
func TestManyHostProcessContainersAreNotPassedOver(t *testing.T) {
	p := product.Policies{Parameters: product.DefaultParameters(), PipePolicies: map[string]product.PipePolicy{}}
	p.Parameters.Action, p.Parameters.HostProcess = product.ActionAudit, product.ActionDeny
	o := product.PipePolicy{Pipes: []string{"csi-proxy*"}, Action: product.ActionAudit}
	for i := range 100 {
		o.Subjects = append(o.Subjects, access.Subject{Name: fmt.Sprintf("s%d", i), Namespace: "shop", ServiceAccounts: []string{"default"}})
	}
	p.PipePolicies["recorded"] = o
	made, err := floor.New(floor.Options{Name: "floor", Policies: p})
	if err != nil {
		t.Fatal(err)
	}
	j, w := newJudge(t, made), reviewer(t, p)
	for _, containers := range []int{1, 400} {
		r := sized(0, containers, 0, 0, "", "")
		pod := r.object.(*corev1.Pod)
		pod.Spec.HostNetwork = true
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{HostProcess: new(true)}}
		v, res := j.ask(t, r), w.Review(product.WithoutTrace(t.Context()), r.review(t))
		if v.allowed || v.failed || res.Allowed {
			t.Errorf("%d containers: the floor admits: %t (failed: %t), the webhook: %t", containers, v.allowed, v.failed, res.Allowed)
		}
	}
}
