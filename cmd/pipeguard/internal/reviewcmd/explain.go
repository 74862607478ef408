package reviewcmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// NewExplain returns "pipeguard explain".
func NewExplain(cluster Cluster) *cobra.Command {
	var namespace, policyDir string
	cmd := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say why an object of the cluster is permitted or refused, and what the nodes say",
		Long: `Reads one object of the cluster of the kubeconfig and judges it here, with the policies, the parameters and the namespace labels of
that cluster, as if an unknown user created it now. Nothing is sent to the cluster. KIND is a kind that the webhook judges, as
kubectl names it: pod, deployment, daemonset, statefulset, replicaset, replicationcontroller, job, cronjob, podtemplate or
persistentvolume, its plural or its short name.

The table has one row for each HostProcess container and for each pipe and host path that the rules look at: the codes of the findings
about it, the PipePolicy and subject that permit it, or the nearest subject with the field that differs, and the decision of nodes
with the cluster's bundle on calls of the container. If no PipePolicy governs a pipe, the parameters permit it at admission, and each
node's own access list decides there. At most 1,000 rows are shown.

The answer is the cluster's if its replicas decide by the same revision. Otherwise, or if their revision cannot be read, standard error
says so and the exit code is 2.

With -o json it prints one object:
  schema    "pipeguard.dev/explain/v1"
  verdict   allowed or denied
  revision, live                      as those of "pipeguard review --live"
  apiVersion, kind, namespace, name, serviceAccount
  code, message, warnings, findings   as those of an object of "pipeguard review"
  reaches   [{container, field, what, path, pipe, codes, policies,
            subjects: [{policy, subject, requirement, expiresAt}], nearest: [{policy, subject, field, want}],
            nodes: [{policy, decision, subject, permission}]}]
            what is pipe, hostPath or hostProcess; decision is allowed, denied or logonly; permission is for people
  more      the number of rows that are left out

Exit code: 0 allowed, 1 denied, 2 the object could not be read, or not judged as the cluster would.`,
		Example: `  pipeguard explain pod/csi-azuredisk-node-win-x7k2p -n kube-system
  pipeguard explain deployment/web -n shop -o json`,
		Args: cobra.RangeArgs(1, 2),
	}
	cli.Text(cmd, &namespace, "namespace", "n", "namespace of the object; without it, that of the context")
	cli.Text(cmd, &policyDir, "policy-dir", "", "directory of Rego modules, as the webhook has it; without it, the built-in policies")
	cluster.AddFlags(cmd)
	out := cli.AddFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kind, name, err := objectNamed(args)
		if err != nil {
			return cli.BadInput(err)
		}
		s, from, err := fromCluster(cmd.Context(), cluster, policyDir, namespace)
		if err != nil {
			return cli.BadInput(err)
		}
		report, err := explain(cmd, s, from, kind, name)
		if err != nil {
			return cli.BadInput(errors.Join(err, from.Faults()))
		}
		var doubt error
		report.Live, doubt = from.report(cmd.Context(), report.Revision)
		p := out.Print(cmd, report, func(p *cli.Printer) { printExplanation(p, report) })
		if doubt != nil {
			return p.Done(cli.BadInput(doubt))
		}
		return p.Answer(report.Verdict == verdictAllowed)
	}
	return cmd
}

// shortNames are those of kubectl, by the resource.
var shortNames = map[string]string{
	"po": "pods", "rc": "replicationcontrollers", "deploy": "deployments", "ds": "daemonsets", "sts": "statefulsets",
	"rs": "replicasets", "cj": "cronjobs", "pv": "persistentvolumes",
}

// objectNamed reads KIND/NAME, or KIND and NAME.
func objectNamed(args []string) (metav1.APIResource, string, error) {
	kind, name, _ := strings.Cut(args[0], "/")
	if len(args) == 2 {
		if strings.Contains(args[0], "/") {
			return metav1.APIResource{}, "", errors.New("name one object, as KIND/NAME")
		}
		name = args[1]
	}
	if faults := content.IsPathSegmentName(name); name == "" || len(faults) > 0 {
		return metav1.APIResource{}, "", fmt.Errorf("%q is no object: want KIND/NAME, such as pod/web", strings.Join(args, " "))
	}
	bare, _, _ := strings.Cut(strings.ToLower(kind), ".") // deployments.apps
	for _, r := range admission.Resources() {
		if bare == r.Name || bare == strings.ToLower(r.Kind) || shortNames[bare] == r.Name {
			return r, name, nil
		}
	}
	return metav1.APIResource{}, "", fmt.Errorf("kind %q is not one that the webhook judges", kind)
}

// explain judges one object of a cluster.
func explain(cmd *cobra.Command, s policysource.Sources, from *origin, kind metav1.APIResource, name string) (explanation, error) {
	reviewer, active, err := s.Reviewer(cmd.Context(), from.Live)
	if err != nil {
		return explanation{}, err
	}
	if err := policysource.Warn(cmd, s.Warnings); err != nil {
		return explanation{}, err
	}
	raw, err := from.Object(cmd.Context(), kind, from.Namespace(), name)
	if err != nil {
		return explanation{}, err
	}
	request, err := admission.ObjectReview(raw)
	if err != nil {
		return explanation{}, err
	}
	result, input := reviewer.Explain(cmd.Context(), request)
	if result.Reason != "" {
		return explanation{}, errors.New(result.Message)
	}
	out := explanation{
		Schema: "pipeguard.dev/explain/v1", Verdict: verdictDenied, Revision: active.Revision(),
		APIVersion: metav1.GroupVersion{Group: request.Kind.Group, Version: request.Kind.Version}.String(), Kind: request.Kind.Kind,
		Namespace: request.Namespace, Name: request.Name, Code: result.Code, Message: result.Message,
		Warnings: append([]string{}, result.Warnings...), Findings: append([]policy.Finding{}, result.Findings...), Reaches: []reach{},
	}
	if result.Allowed {
		out.Verdict = verdictAllowed
	}
	if input != nil {
		out.ServiceAccount = input.ServiceAccount
		newExplainer(s, input).fill(&out)
	}
	return out, nil
}

// Bounds of an explanation: an object of one megabyte can have thousands of mounts, each governed by thousands of policies.
const (
	maxReaches      = 1000
	maxNodePolicies = 20
)

// explainer says what an object reaches, and who permits it.
type explainer struct {
	input    *admission.Input
	policies map[string]*access.Policy
	subjects map[string]*access.Subjects // of the policies that were asked
	now      time.Time
}

func newExplainer(s policysource.Sources, input *admission.Input) *explainer {
	e := &explainer{input: input, policies: map[string]*access.Policy{}, subjects: map[string]*access.Subjects{}, now: time.Now()}
	all := s.Objects.AccessPolicies()
	for i := range all {
		e.policies[all[i].Name] = &all[i]
	}
	return e
}

func (e *explainer) fill(out *explanation) {
	add := func(r reach, of *admission.Access) {
		if len(out.Reaches) >= maxReaches {
			out.More++
			return
		}
		r.take(of)
		for _, f := range out.Findings {
			if f.Field == r.Field || r.volumeField != "" && f.Field == r.volumeField {
				r.Codes, r.marks = append(r.Codes, f.Code), append(r.marks, mark(f))
			}
		}
		r.Codes, r.marks = unique(r.Codes), unique(r.marks)
		if r.What == reachPipe && r.Container != "" {
			r.Nodes = e.onNodes(r)
		}
		out.Reaches = append(out.Reaches, r)
	}
	for i := range e.input.Containers {
		if c := &e.input.Containers[i]; c.HostProcess {
			add(reach{Container: c.Name, Field: c.Field, What: reachHostProcess, image: c.Image}, c.Access)
		}
	}
	for i := range e.input.Mounts {
		m := &e.input.Mounts[i]
		r := targetReach(&m.Target, m.Field)
		r.Container, r.image, r.volumeField, r.isHost = m.Container, m.Image, m.VolumeField, m.HostProcess
		add(r, m.Access)
	}
	for i := range e.input.Unmounted {
		v := &e.input.Unmounted[i]
		add(targetReach(&v.Target, v.Field), v.Access)
	}
	for i := range e.input.PersistentVolumes {
		v := &e.input.PersistentVolumes[i]
		add(targetReach(&v.Target, v.Field), v.Access)
	}
}

// mark is the code of a finding, and its effect if that does not refuse.
func mark(f policy.Finding) string {
	if f.Effect == policy.EffectWarn || f.Effect == policy.EffectAudit {
		return f.Code + " (" + string(f.Effect) + ")"
	}
	return f.Code
}

func unique(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// targetReach is a reach without a container.
func targetReach(t *admission.Target, field string) reach {
	r := reach{Field: field, What: reachHostPath, Path: t.Path, Pipe: t.Pipe, Policies: append([]string{}, t.Policies...)}
	if t.Guarded {
		r.What = reachPipe
	}
	return r
}

// onNodes says what nodes decide by a bundle about calls of the container, by each policy that governs the pipe.
func (e *explainer) onNodes(r reach) []nodeAnswer {
	out := []nodeAnswer{}
	who := caller.Declared(caller.Pod{Namespace: e.input.Namespace, ServiceAccount: e.input.ServiceAccount},
		caller.Container{Name: r.Container, Image: r.image, HostProcess: r.isHost})
	for _, name := range r.Policies[:min(len(r.Policies), maxNodePolicies)] {
		p := e.policies[name]
		if p == nil { // it cannot be read, and permits nothing
			out = append(out, nodeAnswer{Policy: name, Decision: nodeDenied})
			continue
		}
		if e.subjects[name] == nil {
			e.subjects[name] = access.NewSubjects(p.Subjects)
		}
		answer := nodeAnswer{Policy: name, Decision: nodeDenied}
		if is, _, _ := e.subjects[name].Match(&who, access.OfPipe, e.now); is != nil {
			answer = nodeAnswer{Policy: name, Decision: nodeAllowed, Subject: is.Name, Permission: permission(is), short: operations(is)}
		} else if p.LogOnly {
			answer.Decision = nodeLogOnly
		}
		out = append(out, answer)
	}
	return out
}
