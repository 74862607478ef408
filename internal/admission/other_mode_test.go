package admission

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

func TestAContainerOfASubjectInItsOtherModeIsKnown(t *testing.T) {
	governed := func(change func(Policies)) Policies {
		p := governedBy()
		change(p)
		return p
	}
	hostAlone := func(change func(Policies)) Policies {
		p := hostDriver(func(p *PipePolicy) { p.Pipes = nil })
		p.PipePolicies["pipes"] = PipePolicy{Pipes: []string{"csi-proxy-*"}}
		change(p)
		return p
	}
	same := func(Policies) {}
	mounts := func() *corev1.Pod { return subjectPod() }
	host := []OtherMode{{"storage", "node", true}}
	pipes := []OtherMode{{"storage", "node", false}}
	for name, c := range map[string]struct {
		policies Policies
		pod      *corev1.Pod
		want     []OtherMode
	}{
		"a HostProcess container of a subject of pipes": {governed(same), hostPod(), host},
		"… that another policy permits": {governed(func(p Policies) {
			p.PipePolicies["system"] = PipePolicy{Subjects: []access.Subject{{Name: "a", Namespace: "drivers", ServiceAccounts: []string{"node-sa"}, HostProcess: &access.HostProcess{}}}}
		}), hostPod(), nil},
		"… of another service account": {governed(same), in("drivers", "other", hostPod()), nil},
		"… that a parameter permits": {governed(func(p Policies) {
			p.Parameters.HostProcessAllowed["drivers"] = Subjects{ServiceAccounts: []string{"node-sa"}}
		}), hostPod(), nil},
		"… of another image": {governed(same), hostPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "docker.io/evil" }), nil},
		"… of a policy of the parameters": {governed(func(p Policies) {
			p.Parameters.PipePolicies["storage"] = p.PipePolicies["storage"]
			delete(p.PipePolicies, "storage")
		}), hostPod(), nil},
		"… whose permission has ended":                   {governedBy(until(clock)), hostPod(), nil},
		"… of another account":                           {hostDriver(), hostPod(func(p *corev1.Pod) { p.Spec.SecurityContext.WindowsOptions.RunAsUserName = new("x") }), nil},
		"a mount of a subject of HostProcess containers": {hostAlone(same), mounts(), pipes},
		"… of pipes that nobody governs":                 {hostAlone(func(p Policies) { delete(p.PipePolicies, "pipes") }), mounts(), pipes},
		"… that its own policy permits":                  {hostDriver(), mounts(), nil},
		"… of another account that mounts":               {hostAlone(same), in("drivers", "other", mounts()), nil},
		"… of a pipe that its namespace may have": {hostAlone(func(p Policies) {
			delete(p.PipePolicies, "pipes")
			p.Parameters.AllowedNamespaces["drivers"] = Subjects{}
		}), mounts(), nil},
		"both in one pod, where the HostProcess ones are served": {hostAlone(same), hostPod(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, c.policies, nil) })
			for traced, want := range map[bool][]OtherMode{false: c.want, true: nil} {
				ctx := t.Context()
				if !traced {
					ctx = WithoutTrace(ctx)
				}
				var got []OtherMode
				for _, d := range r.Review(ctx, requestFor(t, marshal(t, c.pod), nil)).Details {
					got = append(got, d.OtherModes...)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("traced %t (-want +got):\n%s", traced, diff)
				}
			}
		})
	}
}

func TestTheSearchForOtherModesIsBounded(t *testing.T) {
	p := governedBy()
	scope, err := p.scope(p.pipePolicies())
	if err != nil {
		t.Fatal(err)
	}
	c := Container{Name: "app", Image: "example.com/app:1", HostProcess: true, Access: ungoverned, Field: "spec.containers[0]"}
	in := &Input{Namespace: "drivers", ServiceAccount: "node-sa"}
	details := make([]Detail, maxMatches/scope.subjects["storage"].Weight("drivers")+2)
	for i := range details {
		details[i].Finding.Field = c.Field
	}
	in.Containers = []Container{c}
	scope.otherModes(in, details, time.Now())
	if len(details[0].OtherModes) != 1 || details[len(details)-1].OtherModes != nil {
		t.Errorf("%v … %v", details[0], details[len(details)-1])
	}
}
