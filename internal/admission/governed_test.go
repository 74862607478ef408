package admission

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// governedBy is policies with one PipePolicy for CSI Proxy's pipes, and "team-a" allowed by the parameters.
func governedBy(change ...func(*PipePolicy)) Policies {
	p := PipePolicy{
		Pipes: []string{"csi-proxy-*"}, Action: ActionDeny, Requirement: AllowedNamespace,
		Subjects: []access.Subject{{
			Name: "node", Namespace: "drivers", ServiceAccounts: []string{"node-sa"}, Containers: []string{"app"}, Images: []string{"example.com/app:*"},
		}},
	}
	for _, c := range change {
		c(&p)
	}
	parameters := DefaultParameters()
	parameters.AllowedNamespaces = map[string]Subjects{"team-a": {}}
	return Policies{Parameters: parameters, PipePolicies: map[string]PipePolicy{"storage": p}}
}

func until(end time.Time) func(*PipePolicy) {
	return func(p *PipePolicy) {
		p.Subjects[0].ExpiresAt, p.Subjects[0].Owner, p.Subjects[0].Reason = end, "team", "moving"
	}
}

func action(a Action) func(*PipePolicy) { return func(p *PipePolicy) { p.Action = a } }

func requirement(r Requirement) func(*PipePolicy) { return func(p *PipePolicy) { p.Requirement = r } }

// subjectPod is a pod of the subject of governedBy.
func subjectPod() *corev1.Pod { return in("drivers", "node-sa", testPod(csiPipe)) }

func TestOnlySubjectsMayMountAGovernedPipe(t *testing.T) {
	second := governedBy()
	second.PipePolicies["other"] = PipePolicy{Pipes: []string{csiPipe[len(pipeRoot):]}, Action: ActionAudit,
		Subjects: []access.Subject{{Name: "a", Namespace: "team-a", ServiceAccounts: []string{"builder"}}}}
	own := governedBy()
	own.Parameters.PipePolicies, own.PipePolicies = own.PipePolicies, nil
	for name, c := range map[string]struct {
		policies Policies
		pod      *corev1.Pod
		effect   Effect
		codes    []string
	}{
		"another namespace, which the parameters allow": {governedBy(), testPod(csiPipe), EffectDeny, []string{"PG010"}},
		"another service account":                       {governedBy(), in("drivers", "default", testPod(csiPipe)), EffectDeny, []string{"PG010"}},
		"another container":                             {governedBy(), with(subjectPod(), func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar" }), EffectDeny, []string{"PG010"}},
		"another image":                                 {governedBy(), with(subjectPod(), func(p *corev1.Pod) { p.Spec.Containers[0].Image = "example.com/application:1" }), EffectDeny, []string{"PG010"}},
		"a process of the node, which no pod is": {governedBy(func(p *PipePolicy) {
			p.Subjects = []access.Subject{{Name: "agent", Account: "S-1-5-18", Program: `C:\agent.exe`}}
		}), subjectPod(), EffectDeny, []string{"PG010"}},
		"an init container beside the subject": {governedBy(), with(subjectPod(), func(p *corev1.Pod) {
			c := p.Spec.Containers[0]
			c.Name = "init"
			p.Spec.InitContainers = []corev1.Container{c}
		}), EffectDeny, []string{"PG010"}},
		"a privileged container":                  {governedBy(), with(testPod(csiPipe), privileged), EffectDeny, []string{"PG010"}},
		"the root of the pipes":                   {governedBy(), in("drivers", "node-sa", testPod(`\\.\pipe\`)), EffectDeny, []string{"PG003"}},
		"the root of the pipes where that is lax": {governedBy(action(ActionAudit)), in("drivers", "node-sa", testPod(`\\.\pipe\`)), EffectDeny, []string{"PG003"}},
		"a subPath that leaves the pipe where that is lax": {governedBy(action(ActionAudit)), with(testPod(csiPipe), func(p *corev1.Pod) {
			p.Spec.Containers[0].VolumeMounts[0].SubPath = `..\csi-proxy-disk-v1`
		}), EffectDeny, []string{"PG003"}},
		"nobody's volume in another namespace": {governedBy(), with(testPod(), func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{pipeVolume("v", csiPipe)}
		}), EffectDeny, []string{"PG002"}},
		"a subject without privilege where it is asked": {governedBy(requirement(PrivilegedAndAllowedNamespace)), subjectPod(), EffectDeny, []string{"PG010"}},
		"a subject whose permission has ended":          {governedBy(until(clock)), subjectPod(), EffectDeny, []string{"PG010"}},
		"a strict policy beside a lax one":              {second, in("team-b", "builder", testPod(csiPipe)), EffectDeny, []string{"PG010"}},

		"the subject":                          {governedBy(), subjectPod(), EffectAllow, nil},
		"the subject, by the parameters":       {own, subjectPod(), EffectAllow, nil},
		"the subject of one of two policies":   {second, testPod(csiPipe), EffectAllow, nil},
		"the subject, until long from now":     {governedBy(until(clock.AddDate(0, 0, 8))), subjectPod(), EffectAllow, nil},
		"the subject, until soon":              {governedBy(until(clock.Add(time.Second))), subjectPod(), EffectWarn, []string{"PG009"}},
		"a subject with privilege as asked":    {governedBy(requirement(PrivilegedAndAllowedNamespace)), with(subjectPod(), privileged), EffectAllow, nil},
		"nobody's volume in a subject's pod":   {governedBy(), with(subjectPod(), func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }), EffectAllow, nil},
		"privilege where it is enough":         {governedBy(requirement(PrivilegedOrAllowedNamespace)), with(testPod(csiPipe), privileged), EffectWarn, []string{"PG004"}},
		"another namespace where that is told": {governedBy(action(ActionWarn)), testPod(csiPipe), EffectWarn, []string{"PG010"}},
		"another namespace where that is kept": {governedBy(action(ActionAudit)), testPod(csiPipe), EffectAudit, []string{"PG010"}},
		"a pipe that no policy names":          {governedBy(func(p *PipePolicy) { p.Pipes = []string{"csi-proxy-disk-*"} }), testPod(csiPipe), EffectAllow, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, c.policies, nil) })
			for _, kind := range holders() {
				res := r.Review(t.Context(), requestFor(t, asKind(t, kind, c.pod), nil))
				if res.Allowed != (c.effect != EffectDeny) || res.Effect != c.effect {
					t.Errorf("%s: allowed %t with effect %s, want %s; %s", kind.Kind, res.Allowed, res.Effect, c.effect, res.Message)
				}
				if diff := cmp.Diff(c.codes, res.Codes); diff != "" {
					t.Errorf("%s: codes (-want +got):\n%s", kind.Kind, diff)
				}
			}
			if err := r.Canary(t.Context()); err != nil {
				t.Errorf("canary: %v", err)
			}
		})
	}
}

func TestAPersistentVolumeToAGovernedPipeFollowsTheActionOfItsPolicy(t *testing.T) {
	for action, want := range map[Action]Effect{ActionDeny: EffectDeny, ActionWarn: EffectWarn, ActionAudit: EffectAudit} {
		r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
			o.Engine = newPolicyEngine(t, governedBy(func(p *PipePolicy) { p.Action = action }), nil)
		})
		res := r.Review(t.Context(), requestFor(t, marshal(t, testVolume(csiPipe)), nil))
		if res.Effect != want || res.Code != "PG007" || res.Allowed != (want != EffectDeny) {
			t.Errorf("%s: allowed %t, %s, %s", action, res.Allowed, res.Effect, res.Code)
		}
	}
}

func TestADenialNamesThePoliciesThatGovernAndTheSubjectThatEnded(t *testing.T) {
	many := governedBy(until(clock))
	for i := range 5 {
		many.PipePolicies[fmt.Sprint("also-", i)] = PipePolicy{Pipes: []string{"csi-*"}}
	}
	open := governedBy(until(clock))
	open.PipePolicies["also"] = PipePolicy{Pipes: []string{"csi-*"}, Requirement: PrivilegedAndAllowedNamespace,
		Subjects: []access.Subject{{Name: "open", Namespace: "drivers"}}}
	image := governedBy(until(clock), func(p *PipePolicy) { p.Subjects[0].Images = []string{"elsewhere.com/*"} })
	process := access.Subject{Name: "agent", Account: "S-1-5-18", Program: `C:\agent.exe`, ExpiresAt: clock, Owner: "team", Reason: "moving"}
	processes := governedBy(func(p *PipePolicy) { p.Subjects = []access.Subject{process} })
	beside := governedBy(func(p *PipePolicy) { p.Subjects = append([]access.Subject{process}, p.Subjects...) })
	const nearest = `; nearest is subject "node" of PipePolicy "storage": `
	const ended = `; subject "node" of PipePolicy "storage" ended 2026-03-04T05:06:07Z`
	for name, c := range map[string]struct {
		policies Policies
		pod      *corev1.Pod
		want     string // after the path
	}{
		"one policy":               {governedBy(), testPod(csiPipe), `, governed by PipePolicy "storage"` + fields + nearest + `namespace: want "drivers"`},
		"another container":        {governedBy(), with(subjectPod(), imageOf("example.com/application:1")), `, governed by PipePolicy "storage"` + fields + nearest + `image: want "example.com/app:*", is "example.com/application:1"`},
		"a subject that ended":     {governedBy(until(clock)), subjectPod(), `, governed by PipePolicy "storage"` + fields + ended},
		"among many policies":      {many, subjectPod(), `, governed by PipePolicy "also-0", "also-1", "also-2" and 3 more` + fields + ended},
		"someone else's that does": {governedBy(until(clock)), testPod(csiPipe), `, governed by PipePolicy "storage"` + fields + nearest + `namespace: want "drivers"`},
		"processes":                {processes, subjectPod(), `, governed by PipePolicy "storage"` + fields},
		"a process":                {beside, testPod(csiPipe), `, governed by PipePolicy "storage"` + fields + nearest + `namespace: want "drivers"`},
		"of another image":         {image, subjectPod(), `, governed by PipePolicy "storage"` + fields + nearest + `image: want "elsewhere.com/*", is "example.com/app:1", of none of these registries`},
		"with another that is open and does not suffice": {open, subjectPod(), `, governed by PipePolicy "also", "storage"` + fields + `; subject "open" of PipePolicy "also" permits it to a privileged container only`},
	} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, c.policies, nil) })
			res := r.Review(t.Context(), createRequest(t, c.pod))
			want := `PG010: container "app" mounts volume "v0": "` + csiPipe + `"` + c.want
			if !strings.Contains(res.Message, "\n"+want+"\n") {
				t.Errorf("%s\nhas no line\n%s", res.Message, want)
			}
			if len(res.Details) != 1 || "PG010: "+res.Details[0].Text != want || len(res.Details[0].Policies) != len(c.policies.PipePolicies) {
				t.Errorf("details %+v", res.Details)
			}
		})
	}
}

func imageOf(image string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Image = image }
}

const fields = ` (spec.containers[0].volumeMounts[0], spec.volumes[0].hostPath.path)`

func TestWarningsAboutPoliciesAreShort(t *testing.T) {
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) {
		o.Engine = newPolicyEngine(t, governedBy(action(ActionWarn), until(clock.Add(time.Second))), nil)
	})
	long := with(subjectPod(), func(p *corev1.Pod) { p.Spec.Containers[0].Name = strings.Repeat("long-", 12) })
	for code, c := range map[string]struct {
		raw []byte
		end string
	}{
		"PG009": {marshal(t, subjectPod()), " (until 2026-03-04T05:06:08Z)"}, "PG010": {marshal(t, long), ""}, "PG007": {marshal(t, testVolume(csiPipe)), ""},
	} {
		res := r.Review(t.Context(), requestFor(t, c.raw, nil))
		if len(res.Warnings) != 1 || len(res.Warnings[0]) > 120 || !strings.HasPrefix(res.Warnings[0], code+": ") || !strings.HasSuffix(res.Warnings[0], c.end) {
			t.Errorf("%s: warnings %q", code, res.Warnings)
		}
	}
	res := r.Review(t.Context(), createRequest(t, subjectPod()))
	if want := `; subject "node" of PipePolicy "storage" ends 2026-03-04T05:06:08Z`; len(res.Details) != 1 || !strings.HasSuffix(res.Details[0].Text, want) {
		t.Errorf("details %+v do not end with %s", res.Details, want)
	}
}

// However many subjects there are, and however many containers, what it takes to compare them is bounded.
func TestTheSearchForSubjectsIsBounded(t *testing.T) {
	p := Policies{Parameters: DefaultParameters(), PipePolicies: map[string]PipePolicy{}}
	var subjects []access.Subject
	for i := range maxSubjects {
		subjects = append(subjects, access.Subject{Name: fmt.Sprint("s", i), Namespace: "team-a", Containers: []string{"x"}})
	}
	for i := range 200 {
		p.PipePolicies[fmt.Sprintf("p%03d", i)] = PipePolicy{Pipes: []string{"csi-*"}, Subjects: subjects}
	}
	scope := testScope(t, p)
	by, _ := scope.governors.of("csi-x")
	for containers, want := range map[int]error{1: nil, 40: nil, 50: errTooManySubjects} {
		in := &Input{Namespace: "team-a", ServiceAccount: "default"}
		for i := range containers {
			for range 100 { // mounts of one container cost as much as one
				in.Mounts = append(in.Mounts, Mount{Container: fmt.Sprint("c", i), Target: Target{Policies: by.names, governing: by}})
			}
		}
		if err := scope.permits(in, clock, plenty()); !errors.Is(err, want) {
			t.Errorf("%d containers: %v, want %v", containers, err, want)
		}
	}
}

// A scope is read by all reviews at once.
func TestReviewsShareTheirScope(t *testing.T) {
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, governedBy(), nil) })
	permitted, refused := createRequest(t, subjectPod()), createRequest(t, testPod(csiPipe, csiPipe))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if res := r.Review(t.Context(), permitted); !res.Allowed {
					t.Error(res.Message)
				}
				if res := r.Review(t.Context(), refused); res.Allowed {
					t.Error("admitted")
				}
			}
		})
	}
	wg.Wait()
}

// An image that was mirrored is told from one that is another.
func TestAnImageOfAnotherRegistryIsCalledSo(t *testing.T) {
	for _, tt := range []struct {
		image string
		want  []string
		is    bool
	}{
		{"registry.example/csi/driver:v1", []string{"mcr.microsoft.com/csi/driver:*", "docker.io/csi/driver:*"}, true},
		{"localhost/csi/driver:v1", []string{"csi/driver:*"}, true},
		{"registry.example:5000/driver:v1", []string{"registry.example/driver:*"}, true},
		{"docker.io/csi/other:v1", []string{"mcr.microsoft.com/csi/driver:*", "csi/driver:*"}, false},
		{"csi/other:v1", []string{"docker.io/csi/driver:*"}, false},
		{"other:v1", []string{"mcr.microsoft.com/csi/driver:*"}, false},
		{"registry.example/driver:v1", []string{"sha256:" + strings.Repeat("0", 64)}, false},
	} {
		if is := isElsewhere(tt.image, tt.want); is != tt.is {
			t.Errorf("%s for %q: %t", tt.image, tt.want, is)
		}
	}
}
