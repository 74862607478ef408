// Package reviewcmd is "pipeguard review": it gives the verdicts of the admission webhook on objects in files.
package reviewcmd

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
)

type reviewOptions struct {
	files     []string
	policyDir string
	with      policysource.Additions
	namespace string
	fallback  string // namespace of objects that name none where namespace is empty too; empty means "default"
	ignored   []string
	whySystem bool
	isLive    bool
	cluster   Cluster
	out       *cli.Choice
}

// NewCommand returns "pipeguard review". cluster is that of --live.
func NewCommand(cluster Cluster) *cobra.Command {
	o := reviewOptions{cluster: cluster}
	cmd := &cobra.Command{
		Use:   "review FILE...",
		Short: "Say what the admission webhook would answer to objects",
		Long: `Judges objects from files of YAML or JSON, as many to a file as there are: Pods, workloads by their template
(Deployment, DaemonSet, StatefulSet, ReplicaSet, ReplicationController, Job, CronJob, PodTemplate), PersistentVolumes, Lists
of them, and AdmissionReviews (the whole request, also an update or an ephemeral container). FILE may be a directory (its
*.yaml, *.yml and *.json, not deeper) or - for standard input; a file of more than 64 MiB, or with more than 100,000 documents or
objects, is bad input. An object is judged as if an unknown
user created it, in its own namespace, else in that of --namespace, else in "default". Labels of namespaces are known only with --live.

PipePolicy and PolicyModule objects that should count are named with --policies.

With --live the objects are judged here, with the policies, the parameters and the namespace labels of the cluster of the kubeconfig.
Objects without a namespace belong to that of the context. Nothing is sent to the cluster. The answer is the cluster's if its
replicas decide by the same revision. Otherwise, or if their revision cannot be read, standard error says so and the exit code is 2.
You need to be able to read PipePolicies, PolicyModules and Namespaces and, in the webhook's namespace, its Deployment, the ConfigMap
with its parameters, and its Leases.

An object of a kind that cannot bring a pod or a host path about (ConfigMap, Service, Role …) is not judged and does no
harm. An object of a kind of which nothing is known is bad input: --ignore leaves the kind aside. An object that the API server
refuses before it asks the webhook is bad input too: a field that is unknown or given twice, a path with ".." between slashes.

With -o json it prints one object:
  schema    "pipeguard.dev/review/v1"
  verdict   allowed, denied, or bad-input if one fault was found, whatever else was
  revision  of the policies that judged
  live      with --live: {server, revisions, same}: the API server, the revisions by which the webhook's replicas decide, and
            whether all of them decide by the revision that judged
  objects   in the order of the input: {file, document, line, item, apiVersion, kind, namespace, name, verdict, code,
            message, note, warnings, findings: [{code, effect, field, message}]}
            verdict is allowed, denied or not-judged; document and line count from 1; item is "items[0]" within a List;
            code is that of the finding that decided (PG001 …); message is for people, changes from version to version
            and holds a decision id that changes from run to run; effect is deny, warn or audit; note is there if rules on
            input.object judged an object that the match conditions of a cluster would not send
  faults    [{file, document, line, item, message}]

With --why-system nothing is judged: it lists what each HostProcess container of the objects can reach on a node, the gravest
first, how, and whether the same driver with pipes would have it. It takes the subjects of pipes, and the pipes and paths of equal power,
from --policies and --params. With -o json it prints one object:
  schema    "pipeguard.dev/why-system/v1"
  objects   those with something to say: {file, document, line, item, apiVersion, kind, namespace, name,
            containers: [{field, name, type, account, means}],
            reaches: [{weight, what, how, pipeDriver, containers}], notes}
            weight is critical, high, medium or low; account is empty if the pod declares none; the containers of reaches are
            fields of the object; the other texts are for people and change from version to version
  faults    as above

Exit code: 0 nothing denied, 1 something denied, 2 bad input, or policies or parameters that do not work. With --why-system it is 0 or 2.`,
		Example: `  pipeguard review pod.yaml
  helm template chart | pipeguard review -f - --params parameters.yaml
  kubectl get pipepolicies,policymodules -o yaml | pipeguard review -f manifests/ --policies -
  pipeguard review -f manifests/ --policy-dir policies -o json
  pipeguard review --live -f manifests/ --context production
  pipeguard review --why-system driver.yaml --policies policies.yaml`,
		RunE: func(cmd *cobra.Command, files []string) error {
			o.files = append(o.files, files...)
			return review(cmd, o)
		},
	}
	cmd.Flags().StringArrayVarP(&o.files, "filename", "f", nil, "FILE as well, as kubectl has it; may be repeated")
	cli.Text(cmd, &o.policyDir, "policy-dir", "", "directory of Rego modules; without it, the built-in policies")
	cli.Text(cmd, &o.namespace, "namespace", "n", "namespace of objects that name none; one that names another is bad input")
	cmd.Flags().StringArrayVar(&o.ignored, "ignore", nil, "unknown kind to leave aside, KIND or KIND.GROUP; may be repeated")
	cmd.Flags().BoolVar(&o.whySystem, "why-system", false, "list what HostProcess containers reach on a node; nothing is judged")
	o.with.Add(cmd)
	cmd.Flags().BoolVar(&o.isLive, "live", false, "judge with the policies, parameters and namespaces of a cluster")
	cluster.AddFlags(cmd)
	o.out = cli.AddFormat(cmd)
	return cmd
}

func review(cmd *cobra.Command, o reviewOptions) error {
	if len(o.files) == 0 {
		return cli.BadInput(errors.New("name a file, or - for standard input"))
	}
	if err := checkIgnored(o.ignored); err != nil {
		return cli.BadInput(err)
	}
	if slices.Contains(o.files, "-") && slices.Contains(o.with.Objects, "-") {
		return cli.BadInput(errors.New("objects and --policies cannot both be read from standard input"))
	}
	s, from, err := o.sources(cmd)
	if err != nil {
		return cli.BadInput(err)
	}
	if o.whySystem {
		return whySystem(cmd, s, o)
	}
	j, err := newJudge(cmd.Context(), s, o, from.namespaces())
	if err != nil {
		return cli.BadInput(err)
	}
	if err := policysource.Warn(cmd, s.Warnings); err != nil {
		return err
	}
	objects, faults := manifest.ReadFiles(o.files, cmd.InOrStdin())
	report := j.report(cmd.Context(), objects, faults)
	doubt := from.compare(cmd.Context(), &report)
	p := o.out.Print(cmd, report, func(p *cli.Printer) { printReview(p, report) })
	if doubt != nil {
		return p.Done(cli.BadInput(doubt))
	}
	if report.Verdict == verdictAllowed || report.Verdict == verdictDenied {
		return p.Answer(report.Verdict == verdictAllowed)
	}
	return p.Done(cli.BadInput(nil))
}
