package nodepolicy_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const spire = `\\.\pipe\spire-agent`

// known is a node with a few of the API's groups and one forwarded pipe.
var known = []access.API{
	{Group: "disk", Version: "v1", Operations: []string{"ListDiskIDs", "PartitionDisk"}},
	{Group: "disk", Version: "v1beta3", Operations: []string{"ListDiskIDs", "PartitionDisk"}},
	{Group: "filesystem", Version: "v1", Operations: []string{"Mkdir", "CreateSymlink"}},
	{Group: "system", Version: "v1alpha1", Operations: []string{"StartService", "GetBIOSSerialNumber"}},
	{Group: "iscsi", Version: "v1alpha2", Operations: []string{"ConnectTarget"}},
	{Group: spire},
}

// permissive is Rego that allows what the access list does.
const permissive = "package pipeguard.node\n\ndecision := {\"allowed\": true, \"findings\": set()}\n"

// passes is a test that it passes.
const passes = "package pipeguard.node_test\n\nimport data.pipeguard.node\n\ntest_x if node.decision.allowed\n"

// tested are modules with a test that passes.
func tested(files ...string) map[string]string {
	out := map[string]string{"node_test.rego": passes}
	for i := 0; i+1 < len(files); i += 2 {
		out[files[i]] = files[i+1]
	}
	return out
}

type spec = v1alpha1.PipePolicySpec

func object(name string, change ...func(*spec)) v1alpha1.PipePolicy {
	p := v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec{
		Pipes:    []v1alpha1.PipePattern{"csi-proxy-disk-*"},
		Subjects: []v1alpha1.Subject{{Name: "node", Namespace: "kube-system", ServiceAccounts: []string{"csi-azuredisk-node-sa"}}},
	}}
	for _, c := range change {
		c(&p.Spec)
	}
	return p
}

func options(clock *time.Time) nodepolicy.Options {
	return nodepolicy.Options{
		Served: known, Modules: over(tested("node.rego", permissive)),
		Policy: policy.Options{Entrypoint: "data.pipeguard.node.decision"}, Now: func() time.Time { return *clock },
	}
}

// over has the modules of a bundle decide if there are any, and else those of files.
func over(files map[string]string) func(map[string]string) (policy.Modules, error) {
	return func(added map[string]string) (policy.Modules, error) {
		if len(added) > 0 {
			return policy.Modules{Files: added}, nil
		}
		return policy.Modules{Files: files}, nil
	}
}

func content(t testing.TB, objects ...v1alpha1.PipePolicy) bundle.Bundle {
	t.Helper()
	b, err := policyset.BundleSources{PipePolicies: objects, PolicyRevision: "sha256:00ff"}.Bundle()
	if err != nil {
		t.Fatal(err)
	}
	b.Revision, b.Audience, b.IssuedAt, b.ExpiresAt = 42, "windows", now, now.Add(24*time.Hour)
	return b
}

func live(t testing.TB, clock *time.Time, objects ...v1alpha1.PipePolicy) *nodepolicy.Live {
	t.Helper()
	l, err := nodepolicy.Try(t.Context(), options(clock), content(t, objects...))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func driver(change ...func(*caller.Caller)) caller.Caller {
	c := caller.Caller{Assurance: "pod", User: caller.User{SID: "S-1-5-93-2-1"}, Pod: caller.Pod{Namespace: "kube-system", ServiceAccount: "csi-azuredisk-node-sa", Name: "driver-x"}, Container: caller.Container{Name: "azuredisk", Image: "registry.example/azuredisk-csi:v1"}}
	for _, f := range change {
		f(&c)
	}
	return c
}

func call(group, version, operation string, who caller.Caller, paths ...string) access.Call {
	return access.Call{Group: group, Version: version, Operation: operation, Caller: who, Paths: paths}
}

func TestASubjectMayCallAndNobodyElse(t *testing.T) {
	clock := now
	ends := metav1.NewTime(now.Add(time.Hour))
	l := live(t, &clock,
		object("azuredisk", func(s *spec) {
			s.Subjects[0].Containers = []string{"azuredisk"}
			s.Subjects[0].Images = []string{"registry.example/azuredisk-csi*"}
			s.Subjects = append(s.Subjects, v1alpha1.Subject{Name: "migration", Namespace: "storage", ServiceAccounts: []string{"m"}, Owner: "o", Reason: "r", ExpiresAt: &ends})
		}),
		object("everything", func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"csi-proxy*"}; s.Subjects[0].Namespace = "everywhere" }),
		object("files", func(s *spec) {
			s.Pipes = []v1alpha1.PipePattern{"CSI-Proxy-Filesystem-v1"}
			s.Node = v1alpha1.NodeRules{PathPrefixes: []string{`C:\var\lib\kubelet\plugins`}, RequireToken: true}
		}),
		object("listing", func(s *spec) {
			s.Pipes = []v1alpha1.PipePattern{"csi-proxy-disk-v1"}
			s.Subjects[0].Namespace, s.Node.Methods = "lists", []string{"ListDiskIDs", "Mkdir"}
		}),
		object("control", func(s *spec) {
			s.Pipes = []v1alpha1.PipePattern{"csi-proxy-system-*"}
			s.Subjects[0].Namespace = "control"
		}),
		object("spire", func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"spire*"} }),
	)
	in := func(namespace string) func(*caller.Caller) {
		return func(c *caller.Caller) { c.Pod.Namespace = namespace }
	}
	token := func(c *caller.Caller) { c.Token = true }
	m := driver(in("storage"), func(c *caller.Caller) { c.Pod.ServiceAccount = "m" })
	for name, c := range map[string]struct {
		request access.Call
		rule    string // that allows; empty: refused
	}{
		"its driver":                   {call("disk", "v1", "PartitionDisk", driver()), "azuredisk/node"},
		"its driver, an older version": {call("disk", "v1beta3", "ListDiskIDs", driver()), "azuredisk/node"},
		"an image with a digest": {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) {
			c.Container.Image = "registry.example/azuredisk-csi@sha256:" + strings.Repeat("a", 64)
		})), "azuredisk/node"},
		"a subject that ends":                 {call("disk", "v1", "ListDiskIDs", m), "azuredisk/migration"},
		"a method that is listed":             {call("disk", "v1", "ListDiskIDs", driver(in("lists"))), "listing/node"},
		"a group that is named":               {call("system", "v1alpha1", "StartService", driver(in("control"))), "control/node"},
		"a path with a token":                 {call("filesystem", "v1", "Mkdir", driver(token), `C:\var\lib\kubelet\plugins\x`), "files/node"},
		"a forwarded pipe":                    {call(spire, "", "/spire.api.Agent/Attest", driver()), "spire/node"},
		"any group that need not be named":    {call("filesystem", "v1", "Mkdir", driver(in("everywhere")), `C:\x`), "everything/node"},
		"nobody":                              {call("disk", "v1", "ListDiskIDs", caller.Caller{}), ""},
		"another namespace":                   {call("disk", "v1", "ListDiskIDs", driver(in("default"))), ""},
		"another service account":             {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Pod.ServiceAccount = "default" })), ""},
		"a service account that is not known": {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Pod.ServiceAccount = "" })), ""},
		"another container of the pod":        {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Container.Name = "sidecar" })), ""},
		"another image":                       {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Container.Image = "evil/azuredisk-csi:v1" })), ""},
		"an image whose name goes on":         {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Container.Image = "registry.example/azuredisk-csi-evil:v1" })), ""},
		"the same names without proof":        {call("disk", "v1", "ListDiskIDs", driver(func(c *caller.Caller) { c.Assurance = "process" })), ""},
		"a process of the node":               {call("disk", "v1", "ListDiskIDs", caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{Exe: `C:\x.exe`}}), ""},
		"a method that is not listed":         {call("disk", "v1", "PartitionDisk", driver(in("lists"))), ""},
		"a pipe that is not listed":           {call("disk", "v1beta3", "ListDiskIDs", driver(in("lists"))), ""},
		"a group that is not named":           {call("system", "v1alpha1", "StartService", driver(in("everywhere"))), ""},
		"the other such group":                {call("iscsi", "v1alpha2", "ConnectTarget", driver(in("everywhere"))), ""},
		"a path without a token":              {call("filesystem", "v1", "Mkdir", driver(), `C:\var\lib\kubelet\plugins\x`), ""},
		"a path outside":                      {call("filesystem", "v1", "Mkdir", driver(token), `C:\Windows`), ""},
		"a path that begins alike":            {call("filesystem", "v1", "Mkdir", driver(token), `C:\var\lib\kubelet\plugins-evil`), ""},
		"one of two paths outside":            {call("filesystem", "v1", "CreateSymlink", driver(token), `C:\var\lib\kubelet\plugins\x`, `C:\Windows`), ""},
		"another pipe of the driver":          {call("iscsi", "v1alpha2", "ConnectTarget", driver()), ""},
	} {
		d := l.Decide(c.request)
		if d.Rule != c.rule || d.Allowed != (c.rule != "") {
			t.Errorf("%s: %+v, want rule %q", name, d, c.rule)
		}
		if !d.Allowed && !strings.Contains(d.Reason, "revision 42") {
			t.Errorf("%s: the reason names no revision: %s", name, d.Reason)
		}
	}
	const implied = "PipePolicy everything: a pattern covers %[2]s without spelling out the group %[1]s: they are guarded, and no node permits anything there; write csi-proxy-%[1]s-*"
	if want := []string{
		fmt.Sprintf(implied, "iscsi", "csi-proxy-iscsi-v1alpha1 and csi-proxy-iscsi-v1alpha2"), fmt.Sprintf(implied, "system", "csi-proxy-system-v1alpha1"), "PipePolicy listing: no pipe that it opens has the method Mkdir: it is one of csi-proxy-filesystem-*",
	}; !slices.Equal(l.Notes(), want) {
		t.Errorf("notes %q", l.Notes())
	}
	if d := l.Decide(call("disk", "v1", "ListDiskIDs", driver(in("default")))); !strings.HasPrefix(d.Reason, "PipePolicy azuredisk, everything, listing, policy sha256:00ff, revision 42: ") {
		t.Errorf("reason %q", d.Reason)
	}

	clock = ends.Add(-time.Second)
	if d := l.Decide(call("disk", "v1", "ListDiskIDs", m)); !d.Allowed {
		t.Errorf("before its end: %+v", d)
	}
	clock = ends.Time
	if d := l.Decide(call("disk", "v1", "ListDiskIDs", m)); d.Allowed {
		t.Errorf("at its end: %+v", d)
	}
	clock = now
	if d := l.Decide(call("disk", "v1", "ListDiskIDs", m)); d.Allowed {
		t.Errorf("with the clock back: %+v", d)
	}
	if d := l.Decide(call("disk", "v1", "ListDiskIDs", driver())); !d.Allowed {
		t.Errorf("those that do not end: %+v", d)
	}
}

// process is one of the node.
func process(change ...func(*caller.Caller)) caller.Caller {
	c := caller.Caller{Assurance: "process", User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{PID: 7, Exe: `C:\Program Files\Agent\agent.exe`}, IsHost: true}
	for _, f := range change {
		f(&c)
	}
	return c
}

func TestAProcessOfTheNodeMayCallAndNobodyElse(t *testing.T) {
	clock := now
	ends := metav1.NewTime(now.Add(time.Hour))
	l := live(t, &clock, object("disks", func(s *spec) {
		s.Node.Methods = []string{"ListDiskIDs", "PartitionDisk"}
		s.Subjects = append(s.Subjects,
			v1alpha1.Subject{Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `c:\program files\agent\AGENT.exe`}},
			v1alpha1.Subject{Name: "late", Owner: "o", Reason: "r", ExpiresAt: &ends, Process: &v1alpha1.NodeProcess{Account: "S-1-5-19", Program: `C:\late.exe`}})
	}), object("spire", func(s *spec) {
		s.Pipes = []v1alpha1.PipePattern{"spire*"}
		s.Subjects = []v1alpha1.Subject{{Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\Program Files\Agent\agent.exe`}}}
	}))
	inPod := func(isHostProcess bool) func(*caller.Caller) {
		return func(c *caller.Caller) {
			c.Assurance, c.Pod, c.Container = "pod", caller.Pod{Namespace: "team", ServiceAccount: "a"}, caller.Container{Name: "app", HostProcess: isHostProcess}
		}
	}
	late := process(func(c *caller.Caller) { c.User.SID, c.Process.Exe = "S-1-5-19", `C:\late.exe` })
	for name, c := range map[string]struct {
		who   caller.Caller
		rule  string
		named bool
	}{
		"the process":               {process(), "disks/agent", true},
		"one that ends":             {late, "disks/late", true},
		"a driver beside it":        {driver(), "disks/node", true},
		"in doubt":                  {process(func(c *caller.Caller) { c.IsHost, c.Doubt = false, "the runtime is away" }), "disks/agent", false},
		"in a HostProcess pod":      {process(inPod(true)), "disks/agent", false},
		"in another container":      {process(inPod(false)), "", false},
		"another account":           {process(func(c *caller.Caller) { c.User.SID = "S-1-5-20" }), "", false},
		"another subject's account": {process(func(c *caller.Caller) { c.User.SID = "S-1-5-19" }), "", false},
		"another program":           {process(func(c *caller.Caller) { c.Process.Exe = `C:\Program Files\Agent\other.exe` }), "", false},
		"an account alone":          {process(func(c *caller.Caller) { c.Assurance = "sid" }), "", false},
		"another container":         {driver(func(c *caller.Caller) { c.Pod.Namespace = "team" }), "", false},
	} {
		if d := l.Decide(call("disk", "v1", "PartitionDisk", c.who)); d.Rule != c.rule || d.Allowed != (c.rule != "") || d.Named != c.named {
			t.Errorf("%s: %+v", name, d)
		}
	}
	if d := l.Decide(call(spire, "", "/spire.api.Agent/Attest", process())); d.Rule != "spire/agent" {
		t.Errorf("a forwarded pipe: %+v", d)
	}
	if d := l.Decide(call("disk", "v1", "PartitionDisk", process(), `C:\x`)); d.Rule != "disks/agent" {
		t.Errorf("%+v", d)
	}
	clock = ends.Time
	if d := l.Decide(call("disk", "v1", "PartitionDisk", late)); d.Allowed {
		t.Errorf("at its end: %+v", d)
	}
	if l.Notes() != nil {
		t.Errorf("notes %q", l.Notes())
	}
}

func TestASubjectDoesNotOutliveItsTimeByAClockThatIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var back time.Duration
		o := options(nil)
		o.Now = func() time.Time { return time.Now().Add(-back).Round(0) } // a wall clock alone
		ends := metav1.NewTime(time.Now().Add(time.Hour))
		l, err := nodepolicy.Try(t.Context(), o, content(t, object("azuredisk", func(s *spec) {
			s.Subjects[0].ExpiresAt, s.Subjects[0].Owner, s.Subjects[0].Reason = &ends, "o", "r"
		})))
		if err != nil {
			t.Fatal(err)
		}
		permits := func() bool { return l.Decide(call("disk", "v1", "ListDiskIDs", driver())).Allowed }
		time.Sleep(30 * time.Minute)
		if !permits() {
			t.Error("refused before its end")
		}
		back = 20 * time.Minute
		time.Sleep(30 * time.Minute)
		if permits() {
			t.Error("permitted after its end, with the clock set back")
		}
	})
}

func TestTheStricterOfTwoPoliciesCounts(t *testing.T) {
	clock := now
	lenient := func(s *spec) { s.Node.Action = v1alpha1.NodeLogOnly }
	stranger := driver(func(c *caller.Caller) { c.Pod.Namespace = "default" })
	l := live(t, &clock, object("a", lenient), object("b", func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"csi-proxy-disk-v1"} }),
		object("c", lenient, func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"csi-proxy*"} }))
	for _, c := range []struct {
		group, version string
		allowed        bool
	}{{"disk", "v1", false}, {"disk", "v1beta3", true}, {"filesystem", "v1", true}, {"system", "v1alpha1", false}, {"iscsi", "v1alpha2", false}} {
		d := l.Decide(call(c.group, c.version, "ListDiskIDs", stranger))
		if d.Allowed != c.allowed || d.Effect != access.Deny {
			t.Errorf("%s-%s: %+v", c.group, c.version, d)
		}
	}
}

// What a subject says of itself counts instead of what the policy says of all, and for no other subject.
func TestASubjectMayDoWhatItSaysOfItself(t *testing.T) {
	clock := now
	l := live(t, &clock, object("p", func(s *spec) {
		s.Pipes = []v1alpha1.PipePattern{"csi-proxy-disk-*", "csi-proxy-filesystem-*", "csi-proxy-system-*", "spire*"}
		s.Node = v1alpha1.NodeRules{Methods: []string{"ListDiskIDs", "Mkdir"}, PathPrefixes: []string{`C:\var\all`}}
		s.Subjects = []v1alpha1.Subject{
			{Name: "as-all", Namespace: "all", ServiceAccounts: []string{"csi-azuredisk-node-sa"}},
			{Name: "own", Namespace: "own", ServiceAccounts: []string{"csi-azuredisk-node-sa"}, Node: v1alpha1.SubjectRules{
				Methods: []string{"PartitionDisk", "Mkdir", "StartService"}, PathPrefixes: []string{`C:\var\own`}, Permits: []v1alpha1.Permit{"SystemDisk", "Reformat"},
				Services: []string{"MSiSCSI"}, Limits: v1alpha1.CallLimits{Connections: new(int32(3)), CallsPerSecond: new(int32(5)), Burst: new(int32(7))},
			}},
			{Name: "token", Namespace: "token", ServiceAccounts: []string{"csi-azuredisk-node-sa"}, Node: v1alpha1.SubjectRules{RequireToken: true}},
		}
	}), object("open", func(s *spec) {
		s.Pipes = []v1alpha1.PipePattern{"spire*"}
		s.Subjects = []v1alpha1.Subject{
			{Name: "any", Namespace: "all"}, {Name: "shares", Namespace: "shares", Node: v1alpha1.SubjectRules{Shares: []string{`\\files.example\a`}}},
			{Name: "services", Namespace: "services", Node: v1alpha1.SubjectRules{Services: []string{"MSiSCSI"}}}, {Name: "some", Namespace: "own", Node: v1alpha1.SubjectRules{Methods: []string{"Mkdir"}}},
		}
	}))
	in := func(namespace string) caller.Caller {
		return driver(func(c *caller.Caller) { c.Pod.Namespace = namespace })
	}
	service := func(r access.Call, names ...string) access.Call { r.Services = names; return r }
	for name, c := range map[string]struct {
		request access.Call
		rule    string
		named   bool
	}{
		"a method of all":                  {call("disk", "v1", "ListDiskIDs", in("all")), "p/as-all", true},
		"a path of all":                    {call("filesystem", "v1", "Mkdir", in("all"), `C:\var\all\x`), "p/as-all", true},
		"a method of another":              {call("disk", "v1", "PartitionDisk", in("all")), "", false},
		"an own method":                    {call("disk", "v1", "PartitionDisk", in("own")), "p/own", true},
		"an own path":                      {call("filesystem", "v1", "Mkdir", in("own"), `C:\var\own\x`), "p/own", true},
		"an own service":                   {service(call("system", "v1alpha1", "StartService", in("own")), "msiscsi"), "p/own", true},
		"another service":                  {service(call("system", "v1alpha1", "StartService", in("own")), "RpcSs"), "", false},
		"a method of all, beside own ones": {call("disk", "v1", "ListDiskIDs", in("own")), "", false},
		"a path of all, beside own ones":   {call("filesystem", "v1", "Mkdir", in("own"), `C:\var\all\x`), "", false},
		"without the own token":            {call("disk", "v1", "ListDiskIDs", in("token")), "", false},
		"a pipe that is forwarded":         {call(spire, "", "/spire.api.Agent/Attest", in("all")), "open/any", false},
		"such a pipe, with shares":         {call(spire, "", "/spire.api.Agent/Attest", in("shares")), "", false},
		"such a pipe, with services":       {call(spire, "", "/spire.api.Agent/Attest", in("services")), "", false},
		"such a pipe, with own methods":    {call(spire, "", "/spire.api.Agent/Attest", in("own")), "", false},
	} {
		d := l.Decide(c.request)
		if d.Rule != c.rule || d.Allowed != (c.rule != "") || d.Named != c.named {
			t.Errorf("%s: %+v, want rule %q, named %t", name, d, c.rule, c.named)
		}
		wantPermits, wantLimits := []string(nil), access.Limits{}
		if strings.HasPrefix(c.rule, "p/own") {
			wantPermits, wantLimits = []string{access.Reformat, access.SystemDisk}, access.Limits{Connections: 3, CallsPerSecond: 5, Burst: 7}
		}
		if !slices.Equal(d.Permits, wantPermits) || d.Limits != wantLimits {
			t.Errorf("%s: permits %q, limits %+v", name, d.Permits, d.Limits)
		}
	}
	for _, r := range []access.Call{call("disk", "v1", "PartitionDisk", in("own")), call("filesystem", "v1", "Mkdir", in("own"), `C:\var\own\x`)} {
		if d := l.Decide(r); d.Rule != "p/own" { // one subject, one budget
			t.Errorf("%s is allowed by %q", r.Operation, d.Rule)
		}
	}
	if own, all := l.Connections("disk", "v1", in("own")), l.Connections("disk", "v1", in("all")); own != 3 || all != 0 {
		t.Errorf("%d and %d connections", own, all)
	}
	withToken := in("token")
	withToken.Token = true
	if !l.Decide(call("disk", "v1", "ListDiskIDs", withToken)).Allowed {
		t.Error("with its token it is denied")
	}
}

// Three full lists of a subject are 262,144 combinations, and no more than their values on a node.
func TestASubjectMayHaveFullLists(t *testing.T) {
	const most = 64 // of a list, by the CRD
	values := func(format string) (list []string) {
		for i := range most {
			list = append(list, fmt.Sprintf(format, i))
		}
		return list
	}
	clock := now
	l := live(t, &clock, object("p", func(s *spec) {
		s.Node = v1alpha1.NodeRules{Methods: []string{"PartitionDisk"}}
		s.Subjects = []v1alpha1.Subject{{
			Name: "s", Namespace: "kube-system", ServiceAccounts: values("account-%d"), Containers: values("container-%d"), Images: values("registry.example/driver-%d*"),
		}}
	}))
	who := func(account, container, image int) caller.Caller {
		return driver(func(c *caller.Caller) {
			c.Pod.ServiceAccount, c.Container.Name, c.Container.Image = fmt.Sprintf("account-%d", account), fmt.Sprintf("container-%d", container), fmt.Sprintf("registry.example/driver-%d:v1", image)
		})
	}
	for _, c := range []struct {
		who     caller.Caller
		allowed bool
	}{
		{who(0, 0, 0), true}, {who(most-1, 0, most/2), true}, {who(most/2, most-1, most-1), true},
		{who(most, 0, 0), false}, {who(0, most, 0), false}, {who(0, 0, most), false},
	} {
		if d := l.Decide(call("disk", "v1", "PartitionDisk", c.who)); d.Allowed != c.allowed || c.allowed && !d.Named {
			t.Errorf("%+v: %+v", c.who, d)
		}
	}
	if notes := l.Notes(); len(notes) > 0 {
		t.Errorf("%q", notes)
	}
}

// What is written and cannot be compared permits nothing; it must never be taken for something that was not written.
func TestWhatDoesNotFitPermitsNothing(t *testing.T) {
	clock := now
	for name, c := range map[string]struct {
		change func(*spec) // unfit stands for what no policy object may hold, and a bundle may
		note   string
		unfit  string
	}{
		"an image that cannot be": {func(s *spec) { s.Subjects[0].Images = []string{"unfit"} }, "image", "a b"},
		"a prefix that cannot be": {func(s *spec) { s.Subjects[0].Images = []string{"unfit/c*"} }, "image", "a b"},
		"a path that cannot be": {func(s *spec) {
			s.Pipes = []v1alpha1.PipePattern{"csi-proxy-filesystem-*"}
			s.Node.PathPrefixes = []string{`C:\unfit`}
		}, "path", "..\\\\.."},
		"only methods that are not there": {func(s *spec) { s.Node.Methods = []string{"Mkdir"} }, "method", ""},
		"methods of a forwarded pipe":     {func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"spire-agent"}; s.Node.Methods = []string{"Mkdir"} }, "not CSI Proxy's", ""},
		"paths of a forwarded pipe":       {func(s *spec) { s.Pipes = []v1alpha1.PipePattern{"spire-agent"}; s.Node.PathPrefixes = []string{`C:\x`} }, "not CSI Proxy's", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := content(t, object("p", c.change))
			b.ACL = bytes.ReplaceAll(b.ACL, []byte("unfit"), []byte(c.unfit))
			l, err := nodepolicy.Try(t.Context(), options(&clock), b)
			if err != nil {
				t.Fatal(err)
			}
			for _, api := range known {
				for _, operation := range append([]string{"/spire.api.Agent/Attest", "Attest"}, api.Operations...) {
					if d := l.Decide(call(api.Group, api.Version, operation, driver(), `C:\x`)); d.Effect == access.Allow {
						t.Errorf("%s of %s: %+v", operation, api.Group, d)
					}
				}
			}
			if !slices.ContainsFunc(l.Notes(), func(n string) bool { return strings.Contains(n, c.note) }) {
				t.Errorf("notes %q", l.Notes())
			}
		})
	}
}

func TestABundleThatFailsIsNotPrepared(t *testing.T) {
	clock := now
	for name, change := range map[string]func(*bundle.Bundle){
		"an access list of another form": func(b *bundle.Bundle) { b.ACL = []byte(`{"schema":"v2","policies":[]}`) },
		"unknown words": func(b *bundle.Bundle) {
			b.ACL = []byte(`{"schema":"pipeguard.dev/node-rules/v2","policies":[],"allowAll":true}`)
		},
		"a subject of every namespace": func(b *bundle.Bundle) {
			b.ACL = []byte(`{"schema":"pipeguard.dev/node-rules/v2","policies":[{"name":"p","pipes":["csi-proxy*"],"subjects":[{"name":"s","namespace":""}]}]}`)
		},
		"Rego that does not parse": func(b *bundle.Bundle) { b.Modules = tested("node.rego", permissive, "a.rego", "package") },
		"a test that fails": func(b *bundle.Bundle) {
			b.Modules = map[string]string{"node.rego": permissive, "node_test.rego": "package pipeguard.node_test\n\ntest_x if false\n"}
		},
		"Rego that nothing tests": func(b *bundle.Bundle) { b.Modules = map[string]string{"node.rego": permissive} },
		"Rego that asks the network": func(b *bundle.Bundle) {
			b.Modules = tested("node.rego", "package pipeguard.node\n\ndecision := http.send({\"url\": \"http://x\", \"method\": \"get\"})\n")
		},
		"no decision": func(b *bundle.Bundle) { b.Modules = tested("a.rego", "package pipeguard.node\n\nx := 1\n") },
		"a rule in a place that is reserved": func(b *bundle.Bundle) {
			b.Modules = tested("node.rego", permissive, "a.rego", "package pipeguard.parameters\n\nnode := 1\n")
		},
	} {
		b := content(t, object("p"))
		change(&b)
		n := nodepolicy.New(options(&clock))
		if commit, err := n.Prepare(t.Context(), b, bundle.Seal{}); err == nil || commit != nil || n.Current() != nil {
			t.Errorf("%s: prepared", name)
		}
	}
	n := nodepolicy.New(options(&clock))
	commit, err := n.Prepare(t.Context(), content(t, object("p")), bundle.Seal{})
	if err != nil || n.Current() != nil {
		t.Fatalf("%v; decides before it was committed: %t", err, n.Current() != nil)
	}
	commit()
	if l := n.Current(); l == nil || l.Revision != 42 || l.PolicyRevision != "sha256:00ff" || l.Engine == nil {
		t.Errorf("%+v", l)
	}
	o := options(&clock)
	o.Modules = over(nil)
	if _, err := nodepolicy.Try(t.Context(), o, content(t, object("p"))); err == nil {
		t.Error("a node without Rego")
	}
}
