package admission

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

const system = `NT AUTHORITY\SYSTEM`

// hostDriver is a policy whose subject may be a HostProcess container, where those of others are denied.
func hostDriver(change ...func(*PipePolicy)) Policies {
	p := governedBy(change...)
	own := p.PipePolicies["storage"]
	own.Subjects[0].HostProcess = &access.HostProcess{RunAsUserNames: []string{system, "hpc-group"}}
	p.PipePolicies["storage"] = own
	p.Parameters.HostProcess = ActionDeny
	return p
}

// hostPod is a pod of its subject.
func hostPod(change ...func(*corev1.Pod)) *corev1.Pod {
	p := in("drivers", "node-sa", testPod())
	p.Spec.HostNetwork = true
	p.Spec.SecurityContext = &corev1.PodSecurityContext{WindowsOptions: hostProcess()}
	p.Spec.SecurityContext.WindowsOptions.RunAsUserName = new(system)
	for _, c := range change {
		c(p)
	}
	return p
}

func TestASubjectMayBeAHostProcessContainer(t *testing.T) {
	const nearest = `container "app" (spec.containers[0]); nearest is subject "node" of PipePolicy "storage": `
	withoutPipes := hostDriver(func(p *PipePolicy) { p.Pipes = nil })
	byParameters := hostDriver()
	byParameters.Parameters.PipePolicies, byParameters.PipePolicies = byParameters.PipePolicies, nil
	asAny := hostDriver()
	asAny.PipePolicies["storage"].Subjects[0].HostProcess.RunAsUserNames = nil
	ofAnyContainer := hostDriver(func(p *PipePolicy) { p.Subjects[0].Containers = nil })
	later := func(p *corev1.Pod) { // an ephemeral container in the place of the subject's
		own := p.Spec.Containers[0]
		own.VolumeMounts = nil
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(own)}}
		p.Spec.Containers, p.Spec.Volumes = nil, nil
	}
	many := hostDriver()
	for _, name := range []string{"a", "z"} {
		many.PipePolicies[name] = PipePolicy{Subjects: []access.Subject{{
			Name: "other", Namespace: "drivers", ServiceAccounts: []string{"other"}, HostProcess: &access.HostProcess{},
		}}}
	}
	plain := hostDriver()
	plain.PipePolicies = map[string]PipePolicy{"b": {Pipes: []string{"other"}, Subjects: []access.Subject{
		{Name: "plain", Namespace: "drivers", ServiceAccounts: []string{"node-sa"}},
		{Name: "host", Namespace: "drivers", ServiceAccounts: []string{"other"}, HostProcess: &access.HostProcess{}},
	}}}
	account := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.SecurityContext.WindowsOptions.RunAsUserName = &name }
	}
	for name, c := range map[string]hostCase{
		"the subject":                          {policies: hostDriver(), pod: hostPod(), effect: EffectAllow},
		"the subject, of a policy of no pipe":  {policies: withoutPipes, pod: hostPod(), effect: EffectAllow},
		"the subject, by the parameters":       {policies: byParameters, pod: hostPod(), effect: EffectAllow},
		"the subject, beside others' policies": {policies: many, pod: hostPod(), effect: EffectAllow},
		"an account in another case":           {policies: hostDriver(), pod: hostPod(account("nt authority\\System")), effect: EffectAllow},
		"another account of the list":          {policies: hostDriver(), pod: hostPod(account("HPC-group")), effect: EffectAllow},
		"any account":                          {policies: asAny, pod: hostPod(account("x")), effect: EffectAllow},
		"any account, and none":                {policies: asAny, pod: hostPod(func(p *corev1.Pod) { p.Spec.SecurityContext.WindowsOptions.RunAsUserName = nil }), effect: EffectAllow},
		"the account of the container itself": {policies: hostDriver(), pod: hostPod(account("x"), func(p *corev1.Pod) {
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{WindowsOptions: &corev1.WindowsSecurityContextOptions{RunAsUserName: new(system)}}
		}), effect: EffectAllow},
		"until long from now": {policies: hostDriver(until(clock.AddDate(0, 0, 8))), pod: hostPod(), effect: EffectAllow},
		"until soon":          {policies: hostDriver(until(clock.Add(time.Second))), pod: hostPod(), effect: EffectWarn, code: "PG009"},

		"its end":             {policies: hostDriver(until(clock)), pod: hostPod(), effect: EffectDeny, code: "PG005", text: `subject "node" of PipePolicy "storage" ended `},
		"another image":       {policies: hostDriver(), pod: hostPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "docker.io/evil" }), effect: EffectDeny, code: "PG005", text: nearest + `image: want "example.com/app:*", is "docker.io/evil"`},
		"another container":   {policies: hostDriver(), pod: hostPod(func(p *corev1.Pod) { p.Spec.Containers[0].Name = "sidecar" }), effect: EffectDeny, code: "PG005", text: `container: want "app", is "sidecar"`},
		"a container later":   {policies: hostDriver(), pod: hostPod(later), effect: EffectDeny, code: "PG005", text: `container: want "app"`},
		"any, and later":      {policies: ofAnyContainer, pod: hostPod(later), effect: EffectAllow},
		"another account":     {policies: many, pod: in("drivers", "default", hostPod()), effect: EffectDeny, code: "PG005", text: `serviceAccount: want "`},
		"another namespace":   {policies: hostDriver(), pod: in("team-a", "node-sa", hostPod()), effect: EffectDeny, code: "PG005"},
		"a Windows account":   {policies: hostDriver(), pod: hostPod(account("ContainerAdministrator")), effect: EffectDeny, code: "PG005", text: nearest + `runAsUserName: want "NT AUTHORITY\SYSTEM" or "hpc-group", is "ContainerAdministrator"`},
		"no Windows account":  {policies: hostDriver(), pod: hostPod(func(p *corev1.Pod) { p.Spec.SecurityContext.WindowsOptions.RunAsUserName = nil }), effect: EffectDeny, code: "PG005", text: `runAsUserName: want "NT AUTHORITY\SYSTEM" or "hpc-group", is not set`},
		"an account too many": {policies: hostDriver(), pod: hostPod(account(system + " ")), effect: EffectDeny, code: "PG005"},
		"one beside it": {policies: hostDriver(), pod: hostPod(func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "evil", Image: "docker.io/evil"})
		}), effect: EffectDeny, code: "PG005", text: `container "evil" (spec.containers[1])`},
		"an annotation": {policies: hostDriver(), pod: hostPod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"microsoft.com/hostprocess-inherit-user": "true"}
		}), effect: EffectDeny, code: "PG006"},
		"a subject that does not permit it": {policies: plain, pod: hostPod(), effect: EffectDeny, code: "PG005", text: `nearest is subject "plain" of PipePolicy "b": it does not permit HostProcess containers`},
	} {
		t.Run(name, func(t *testing.T) {
			c.check(t)
		})
	}
}

// hostProcessAllowed is subjects like those of a policy.
func TestTheParameterPermitsHostProcessContainersByServiceAccount(t *testing.T) {
	p := DefaultParameters()
	p.HostProcess, p.HostProcessAllowed = ActionDeny, map[string]Subjects{"drivers": {ServiceAccounts: []string{"node-sa"}}}
	r := newReviewer(t, p)
	for pod, allowed := range map[*corev1.Pod]bool{
		hostPod(): true, hostPod(func(p *corev1.Pod) { p.Spec.Containers[0].Image = "docker.io/evil" }): true,
		in("drivers", "", hostPod()): false, in("drivers", "default", hostPod()): false, in("team-a", "node-sa", hostPod()): false,
	} {
		res := r.Review(t.Context(), requestFor(t, marshal(t, pod), nil))
		if res.Allowed != allowed || !allowed && res.Code != "PG005" {
			t.Errorf("%s/%s: allowed %t, %s", pod.Namespace, pod.Spec.ServiceAccountName, res.Allowed, res.Message)
		}
	}
	res := r.Review(t.Context(), requestFor(t, marshal(t, in("drivers", "default", hostPod())), nil))
	if want := `nearest is subject "drivers" of the parameter hostProcessAllowed: serviceAccount: want "node-sa"`; !strings.Contains(res.Message, want) {
		t.Errorf("%s, want %s", res.Message, want)
	}
}

// Whoever permits HostProcess containers elsewhere is not asked.
func TestHostProcessPoliciesOfOtherNamespacesAreNotAsked(t *testing.T) {
	p := hostDriver()
	scope, err := p.scope(p.pipePolicies())
	if err != nil {
		t.Fatal(err)
	}
	if scope.host["team-a"] != nil || len(scope.host) != 1 {
		t.Errorf("%v", scope.host)
	}
	if diff := cmp.Diff([]string{"storage"}, scope.host["drivers"].names); diff != "" {
		t.Error(diff)
	}
}

func TestThePolicyRevisionChangesWithWhoMayBeAHostProcessContainer(t *testing.T) {
	one := hostDriver().data(hostDriver().pipePolicies())
	for name, change := range map[string]func(*Policies){
		"another account": func(p *Policies) { p.PipePolicies["storage"].Subjects[0].HostProcess.RunAsUserNames = nil },
		"none":            func(p *Policies) { p.PipePolicies["storage"].Subjects[0].HostProcess = nil },
		"the parameter": func(p *Policies) {
			p.Parameters.HostProcessAllowed = map[string]Subjects{"a": {ServiceAccounts: []string{"b"}}}
		},
	} {
		p := hostDriver()
		change(&p)
		if cmp.Diff(one, p.data(p.pipePolicies())) == "" {
			t.Errorf("%s: the data is the same", name)
		}
	}
}

func TestAPolicyOfHostProcessContainersNamesAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*access.Subject)
		want   string
	}{
		"itself":                       {func(*access.Subject) {}, ""},
		"any Windows account":          {func(s *access.Subject) { s.HostProcess.RunAsUserNames = nil }, ""},
		"a group":                      {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{"hpc-local-group", `D\svc$`} }, ""},
		"no service account":           {func(s *access.Subject) { s.ServiceAccounts = nil }, "must name its service accounts"},
		"a list of nobody":             {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{} }, "is empty"},
		"an empty name":                {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{""} }, "it is empty"},
		"a name twice":                 {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{"a", "a"} }, "in the list already"},
		"a pattern":                    {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{`NT AUTHORITY\*`} }, "names are exact"},
		"a name of spaces and dots":    {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{" ."} }, "want an account"},
		"two domains":                  {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{`A\B\C`} }, "want an account"},
		"a slash":                      {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{"NT AUTHORITY/SYSTEM"} }, "want an account"},
		"a line":                       {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{"a\nb"} }, "want an account"},
		"a name that is too long":      {func(s *access.Subject) { s.HostProcess.RunAsUserNames = []string{strings.Repeat("a", 257)} }, "257 characters"},
		"neither pipes nor permission": {func(s *access.Subject) { s.HostProcess = nil }, "guards nothing"},
	} {
		p := hostDriver(func(p *PipePolicy) { p.Pipes = nil }).PipePolicies["storage"]
		tt.change(&p.Subjects[0])
		err := p.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}
