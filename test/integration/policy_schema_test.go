//go:build !windows

package integration

import (
	"errors"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// The definitions refuse these by themselves, whether or not a webhook answers.
func TestDefinitionsRefusePoliciesThatCannotBeMeant(t *testing.T) {
	site := at(t)
	later := metav1.NewTime(time.Now().Add(time.Hour))
	many := func(n int) (out []v1alpha1.PipePattern) {
		for range n {
			out = append(out, v1alpha1.PipePattern("p"+strings.Repeat("x", len(out))))
		}
		return out
	}
	pipes := []v1alpha1.PipePattern{"csi-proxy-disk-v1"}
	with := func(change func(*v1alpha1.Subject)) *v1alpha1.PipePolicy {
		s := subject("kube-system")
		change(&s)
		return pipePolicy("bad", pipes, s)
	}
	process := func(account, program string, change func(*v1alpha1.Subject)) *v1alpha1.PipePolicy {
		s := v1alpha1.Subject{Name: "agent", Process: &v1alpha1.NodeProcess{Account: account, Program: program}}
		change(&s)
		return pipePolicy("bad", pipes, s)
	}
	host := func(accounts ...string) func(*v1alpha1.Subject) {
		return func(s *v1alpha1.Subject) {
			s.ServiceAccounts, s.HostProcess = []string{"node"}, &v1alpha1.HostProcess{RunAsUserNames: accounts}
		}
	}
	paths := func(list ...string) func(*v1alpha1.Subject) {
		return func(s *v1alpha1.Subject) { s.ServiceAccounts, s.HostPaths = []string{"node"}, list }
	}
	asItIs, agent := func(*v1alpha1.Subject) {}, `C:\Program Files\Agent\agent.exe`
	token := process("S-1-5-18", agent, asItIs)
	token.Spec.Node.RequireToken = true
	action := pipePolicy("bad", pipes)
	action.Spec.Admission.Action = "Allow"
	requirement := pipePolicy("bad", pipes)
	requirement.Spec.Admission.Requirement = "Privileged"
	nodeAction := pipePolicy("bad", pipes)
	nodeAction.Spec.Node.Action = "Warn"
	for name, c := range map[string]struct {
		object client.Object
		field  string
		text   string
	}{
		"no pipes":                {pipePolicy("bad", []v1alpha1.PipePattern{}), "spec", "guards nothing"},
		"too many pipes":          {pipePolicy("bad", many(65)), "spec.pipes", "at most 64"},
		"a pipe twice":            {pipePolicy("bad", append(pipes, pipes...)), "spec.pipes[1]", "Duplicate"},
		"every pipe":              {pipePolicy("bad", []v1alpha1.PipePattern{"*"}), "spec.pipes[0]", "should match"},
		"a star in the middle":    {pipePolicy("bad", []v1alpha1.PipePattern{"csi-*-v1"}), "spec.pipes[0]", "should match"},
		"a path":                  {pipePolicy("bad", []v1alpha1.PipePattern{`\\.\pipe\csi-proxy-disk-v1`}), "spec.pipes[0]", "should match"},
		"an unknown action":       {action, "spec.admission.action", "Unsupported value"},
		"an unknown requirement":  {requirement, "spec.admission.requirement", "Unsupported value"},
		"an unknown node action":  {nodeAction, "spec.node.action", "Unsupported value"},
		"a subject without name":  {with(func(s *v1alpha1.Subject) { s.Name = "" }), "spec.subjects[0].name", "at least 1"},
		"no namespace":            {with(func(s *v1alpha1.Subject) { s.Namespace = "" }), "spec.subjects[0]", "set namespace or process"},
		"a pattern of namespaces": {with(func(s *v1alpha1.Subject) { s.Namespace = "kube-*" }), "spec.subjects[0].namespace", "should match"},
		"a process by its user":   {process("SYSTEM", agent, asItIs), "spec.subjects[0].process.account", "should match"},
		"programs of a directory": {process("S-1-5-18", `C:\Program Files\Agent\*`, asItIs), "spec.subjects[0].process.program", "should match"},
		"a program of no path":    {process("S-1-5-18", "agent.exe", asItIs), "spec.subjects[0].process.program", "should match"},
		"a process of a namespace": {process("S-1-5-18", agent, func(s *v1alpha1.Subject) { s.Namespace = "kube-system" }),
			"spec.subjects[0]", "and not both"},
		"a process in containers":         {process("S-1-5-18", agent, func(s *v1alpha1.Subject) { s.Containers = []string{"agent"} }), "spec.subjects[0]", "is in no pod"},
		"a process's token":               {process("S-1-5-18", agent, func(s *v1alpha1.Subject) { s.Node.RequireToken = true }), "spec.subjects[0]", "has a token"},
		"a process beside a token of all": {token, "spec", "has a token"},
		"a process as a host":             {process("S-1-5-18", agent, host()), "spec.subjects[0]", "leave"},
		"hosts of any service account":    {with(func(s *v1alpha1.Subject) { s.ServiceAccounts, s.HostProcess = nil, &v1alpha1.HostProcess{} }), "spec.subjects[0]", "must name its service accounts"},
		"hosts under a pattern":           {with(host(`NT AUTHORITY\*`)), "spec.subjects[0].hostProcess.runAsUserNames[0]", "should match"},
		"hosts under no account":          {with(host("")), "spec.subjects[0].hostProcess.runAsUserNames[0]", "at least 1"},
		"hosts under one account twice":   {with(host("a", "a")), "spec.subjects[0].hostProcess.runAsUserNames[1]", "Duplicate"},
		"a process with host paths":       {process("S-1-5-18", agent, paths(`C:\x`)), "spec.subjects[0]", "leave"},
		"host paths of any account":       {with(func(s *v1alpha1.Subject) { s.ServiceAccounts, s.HostPaths = nil, []string{`C:\x`} }), "spec.subjects[0]", "must name its service accounts"},
		"a host path under a pattern":     {with(paths(`C:\var\*`)), "spec.subjects[0].hostPaths[0]", "should match"},
		"a host path without a drive":     {with(paths("/var/lib/kubelet")), "spec.subjects[0].hostPaths[0]", "should match"},
		"a host path beyond ASCII":        {with(paths("C:\\plugin\u017f")), "spec.subjects[0].hostPaths[0]", "should match"},
		"a host path twice":               {with(paths(`C:\x`, `C:\x`)), "spec.subjects[0].hostPaths[1]", "Duplicate"},
		"an empty account":                {with(func(s *v1alpha1.Subject) { s.ServiceAccounts = []string{""} }), "spec.subjects[0].serviceAccounts[0]", "at least 1"},
		"an exception without owner": {with(func(s *v1alpha1.Subject) { s.ExpiresAt, s.Reason = &later, "a migration" }),
			"spec.subjects[0]", "name its owner and reason"},
		"an exception without reason": {with(func(s *v1alpha1.Subject) { s.ExpiresAt, s.Owner = &later, "storage team" }),
			"spec.subjects[0]", "name its owner and reason"},
		"the node's account without shares": {with(func(s *v1alpha1.Subject) { s.Node.Permits = []v1alpha1.Permit{"NodeAccount"} }), "spec.subjects[0].node", "NodeAccount needs shares"},
		"an unknown permit":                 {with(func(s *v1alpha1.Subject) { s.Node.Permits = []v1alpha1.Permit{"All"} }), "spec.subjects[0].node.permits[0]", "Unsupported value"},
		"no calls at all":                   {with(func(s *v1alpha1.Subject) { s.Node.Limits.CallsPerSecond = new(int32(0)) }), "spec.subjects[0].node.limits.callsPerSecond", "greater than or equal to 1"},
		"a burst without a rate":            {with(func(s *v1alpha1.Subject) { s.Node.Limits.Burst = new(int32(1)) }), "spec.subjects[0].node.limits", "without callsPerSecond"},
		"a share that is too short":         {with(func(s *v1alpha1.Subject) { s.Node.Shares = []string{"x"} }), "spec.subjects[0].node.shares[0]", "at least 5"},
		"two subjects of one name":          {pipePolicy("bad", pipes, subject("a"), subject("b")), "spec.subjects[1]", "Duplicate"},

		"no modules":               {module("bad", nil), "spec.modules", "at least 1"},
		"a module that is no Rego": {module("bad", map[string]string{"rules.txt": "x"}), "spec.modules[0].name", "should match"},
		"a module in a directory":  {module("bad", map[string]string{"../rules.rego": "x"}), "spec.modules[0].name", "should match"},
		"an empty module":          {module("bad", map[string]string{"rules.rego": ""}), "spec.modules[0].rego", "at least 1"},
		"a module that is too large": {module("bad", map[string]string{"rules.rego": strings.Repeat("#", 262145)}),
			"spec.modules[0].rego", "may not be more than 262144"},
	} {
		t.Run(name, func(t *testing.T) {
			err := site.api.Client.Create(t.Context(), c.object, client.DryRunAll)
			status, ok := errors.AsType[*apierrors.StatusError](err)
			if !ok || !apierrors.IsInvalid(err) || strings.Contains(err.Error(), "admission webhook") {
				t.Fatalf("got %v", err)
			}
			for _, cause := range status.ErrStatus.Details.Causes {
				if cause.Field == c.field && strings.Contains(string(cause.Type)+cause.Message, c.text) {
					return
				}
			}
			t.Errorf("no cause %q at %s: %+v", c.text, c.field, status.ErrStatus.Details.Causes)
		})
	}
}

func TestDefinitionsTakeAProcessOfNodes(t *testing.T) {
	guarded(t)
	p := pipePolicy("process", []v1alpha1.PipePattern{"csi-proxy-disk-v1"},
		v1alpha1.Subject{Name: "agent", Process: &v1alpha1.NodeProcess{Account: "S-1-5-18", Program: `C:\Program Files\Agent\agent.exe`}})
	if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil || p.Spec.Subjects[0].Process == nil {
		t.Error(err)
	}
}

func TestDefinitionsTakeHostProcessContainersWithoutPipes(t *testing.T) {
	guarded(t)
	for _, accounts := range [][]string{nil, {`NT AUTHORITY\SYSTEM`, "hpc-local-group", `DOMAIN\svc$`}} {
		s := subject("kube-system")
		s.ServiceAccounts, s.HostProcess = []string{"node"}, &v1alpha1.HostProcess{RunAsUserNames: accounts}
		p := pipePolicy("hosts", nil, s)
		if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil || p.Spec.Subjects[0].HostProcess == nil || len(p.Spec.Subjects[0].HostProcess.RunAsUserNames) != len(accounts) {
			t.Error(err)
		}
	}
}

func TestDefinitionsFillInTheStrictDefaults(t *testing.T) {
	guarded(t)
	p := pipePolicy("defaults", []v1alpha1.PipePattern{"csi-proxy-disk-v1"})
	if err := at(t).api.Client.Create(t.Context(), p, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if p.Spec.Admission != (v1alpha1.AdmissionRules{Action: v1alpha1.ActionDeny, Requirement: v1alpha1.RequireSubject}) || p.Spec.Node.Action != v1alpha1.NodeEnforce {
		t.Errorf("defaults: %+v", p.Spec)
	}
}
