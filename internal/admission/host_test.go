package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// driverSubject is a subject, and a container that is one.
func driverSubject() ([]access.Subject, caller.Caller) {
	return []access.Subject{{Name: "driver", Namespace: "kube-system", ServiceAccounts: []string{"node"}, Images: []string{"r.io/a/driver:*"}}},
		caller.Declared(caller.Pod{Namespace: "kube-system", ServiceAccount: "node"}, caller.Container{Name: "app", Image: "r.io/a/driver:v1"})
}

func hostsOf(list []access.Subject) hosts {
	h := hosts{}
	h.add(list)
	return h
}

func TestAHostProcessContainerIsASubjectOnlyIfThatPermitsIt(t *testing.T) {
	for name, tt := range map[string]struct {
		permits   *access.HostProcess
		container func(*caller.Container)
		field     access.Field // that does not fit
	}{
		"under any account":        {permits: &access.HostProcess{}},
		"under none":               {permits: &access.HostProcess{}, container: func(c *caller.Container) { c.RunAsUserName = "" }},
		"under this account":       {permits: &access.HostProcess{RunAsUserNames: []string{"x", `nt authority\SYSTEM`}}},
		"not permitted":            {field: access.FieldHostProcess},
		"no HostProcess container": {permits: &access.HostProcess{}, container: func(c *caller.Container) { c.HostProcess = false }, field: access.FieldHostProcess},
		"under another account":    {permits: &access.HostProcess{RunAsUserNames: []string{"x"}}, field: access.FieldRunAsUserName},
		"under no account":         {permits: &access.HostProcess{RunAsUserNames: []string{"x", ""}}, container: func(c *caller.Container) { c.RunAsUserName = "" }, field: access.FieldRunAsUserName},
		"under one like it":        {permits: &access.HostProcess{RunAsUserNames: []string{"K"}}, container: func(c *caller.Container) { c.RunAsUserName = "\u212a" }, field: access.FieldRunAsUserName},
		"another image":            {container: func(c *caller.Container) { c.Image = "evil" }, field: access.FieldImage},
	} {
		list, c := driverSubject()
		s := &list[0]
		s.HostProcess = tt.permits
		c.Container.HostProcess, c.Container.RunAsUserName = true, `NT AUTHORITY\SYSTEM`
		if tt.container != nil {
			tt.container(&c.Container)
		}
		is, ended, miss := access.NewSubjects(list).Match(&c, hostsOf(list).ofHostProcess, clock)
		if (is != nil) != (tt.field == "") || ended != nil || miss.Field != tt.field {
			t.Errorf("%s: subject %v, nearest by %q, want %q", name, is, miss.Field, tt.field)
		}
		if tt.permits != nil && miss.Field == access.FieldRunAsUserName && len(miss.Want()) != len(tt.permits.RunAsUserNames) {
			t.Errorf("%s: wants %q", name, miss.Want())
		}
	}
	list, c := driverSubject()
	if is, _, _ := access.NewSubjects(list).Match(&c, access.OfPipe, clock); is == nil {
		t.Error("a subject that permits no HostProcess container permits no pipe")
	}
	process := access.Subject{Name: "agent", Account: "S-1-5-18", Program: `C:\a.exe`, HostProcess: &access.HostProcess{}}
	if process.CheckProcess() == nil {
		t.Error("a process of the node is a HostProcess container")
	}
}

func TestAHostPathIsASubjectsOnlyIfThatPermitsIt(t *testing.T) {
	const plugins = `C:\var\lib\kubelet\plugins`
	mounted := func(path string) *pipepath.Directory {
		d, ok := pipepath.MountedDirectory(path, "")
		if !ok {
			t.Fatal(path)
		}
		return &d
	}
	for name, tt := range map[string]struct {
		permits   []string
		asHost    *access.HostProcess
		directory *pipepath.Directory
		container func(*caller.Container)
		field     access.Field // that does not fit
		account   access.Field // without regard to the container
	}{
		"the path":                 {permits: []string{`D:\x`, plugins}, directory: mounted(plugins)},
		"a path in it":             {permits: []string{"c:/var/LIB/kubelet"}, directory: mounted(plugins)},
		"the drive":                {permits: []string{`C:\`}, directory: mounted(plugins)},
		"a path that it is in":     {permits: []string{plugins + `\x`}, directory: mounted(plugins), field: access.FieldHostPath, account: access.FieldHostPath},
		"another path":             {permits: []string{plugins}, directory: mounted(plugins + "x"), field: access.FieldHostPath, account: access.FieldHostPath},
		"none":                     {directory: mounted(plugins), field: access.FieldHostPath, account: access.FieldHostPath},
		"a path that none can be":  {permits: []string{`C:\VAR~1`, ""}, directory: mounted(`C:\`), field: access.FieldHostPath, account: access.FieldHostPath},
		"a path that is not known": {permits: []string{`C:\`}, field: access.FieldHostPath, account: access.FieldHostPath},
		"another image":            {permits: []string{plugins}, directory: mounted(plugins), container: func(c *caller.Container) { c.Image = "evil" }, field: access.FieldImage},
		"a permitted HostProcess container, which needs no mount": {
			asHost: &access.HostProcess{RunAsUserNames: []string{"SYSTEM"}}, container: func(c *caller.Container) { c.HostProcess, c.RunAsUserName = true, "system" }, account: access.FieldHostPath,
		},
		"a HostProcess container under another account": {
			asHost: &access.HostProcess{RunAsUserNames: []string{"SYSTEM"}}, container: func(c *caller.Container) { c.HostProcess, c.RunAsUserName = true, "x" }, field: access.FieldHostPath, account: access.FieldHostPath,
		},
		"a container that is no HostProcess container": {asHost: &access.HostProcess{}, directory: mounted(plugins), field: access.FieldHostPath, account: access.FieldHostPath},
	} {
		list, c := driverSubject()
		s := &list[0]
		s.HostPaths, s.HostProcess = tt.permits, tt.asHost
		if tt.container != nil {
			tt.container(&c.Container)
		}
		subjects, h := access.NewSubjects(list), hostsOf(list)
		if is, ended, miss := subjects.Match(&c, h.ofHostPath(tt.directory), clock); (is != nil) != (tt.field == "") || ended != nil || miss.Field != tt.field {
			t.Errorf("%s: subject %v, nearest by %q, want %q", name, is, miss.Field, tt.field)
		}
		if is, _, miss := subjects.Match(&c, h.ofAccountHostPath(tt.directory), clock); (is != nil) != (tt.account == "") || miss.Field != tt.account {
			t.Errorf("%s: of its account: subject %v, nearest by %q, want %q", name, is, miss.Field, tt.account)
		}
	}
	process := access.Subject{Name: "agent", Account: "S-1-5-18", Program: `C:\a.exe`, HostPaths: []string{plugins}}
	if process.CheckProcess() == nil {
		t.Error("a process of the node has host paths")
	}
	document := access.Document{Schema: access.Schema, Policies: []access.Policy{{Name: "p", Pipes: []string{"x"}, Subjects: []access.Subject{{Name: "s", Namespace: "n", HostPaths: []string{plugins}}}}}}
	if document.Check() == nil {
		t.Error("a node takes what it does not ask for")
	}
}

// hostCase is a pod that reaches its node, under policies, and the verdict on it and on every kind of object that makes such pods.
type hostCase struct {
	policies Policies
	pod      *corev1.Pod
	effect   Effect
	code     string
	text     string // in the refusal
}

func (c hostCase) check(t *testing.T) {
	t.Helper()
	r := newReviewer(t, DefaultParameters(), func(o *ReviewerOptions) { o.Engine = newPolicyEngine(t, c.policies, nil) })
	for _, kind := range holders() {
		res := r.Review(t.Context(), requestFor(t, asKind(t, kind, c.pod), nil))
		if res.Allowed != (c.effect != EffectDeny) || res.Effect != c.effect || res.Code != c.code || kind.Kind == "Pod" && !strings.Contains(res.Message, c.text) {
			t.Errorf("%s: allowed %t with effect %s, %s, want %s, %s %s: %s", kind.Kind, res.Allowed, res.Effect, res.Code, c.effect, c.code, c.text, res.Message)
		}
	}
}
