package clustercmd

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

// NewStatus returns "pipeguard status".
func NewStatus() *cobra.Command {
	var c connection
	var namespace string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Say whether a cluster enforces the guard everywhere, and where it does not",
		Long: `Asks the cluster of the kubeconfig, and changes nothing in it:

  objects   the webhook configuration for pods, workloads and PersistentVolumes: the rules send every kind that is judged, the caBundle
            is there, no selector and no match condition was added, nothing is ignored, and one manager alone wrote it
  changes   the same of the configuration for policy objects
  probe     whether the API server asks: a pod that names the directory of all pipes is sent as a trial that creates nothing, to
            the namespace of --namespace or the context, and must be refused by Pipeguard. Where another admission plugin refuses the
            pod first, or the right to create pods lacks, it is sent as a PodTemplate, then in a Deployment
  replicas  ready replicas of the webhook, all of which decide by one revision
  policies  PipePolicies and PolicyModules are ready and published, and their actions are Deny and Enforce
  modes     the parameters: hostProcess, equalPower and hostPaths are Deny, requirement rests on more than "privileged"
  existing  the reports of the background scan: objects that exist and would be refused now, and what the next step would refuse: the
            findings that are only recorded or warned of, by the setting that would refuse them
  nodes     every Windows node has a report that is recent, and decides by the bundle that is published

A check is "ok", "no", or "unknown" if the rights lack to find out. What the next step would refuse is counted, and is no fault of
its own.

With -o json it prints one object:
  schema    "pipeguard.dev/status/v1"
  verdict   enforced, not-enforced or unknown
  server, namespace                   the API server, and the namespace of the webhook
  revisions                           by which the replicas decide
  checks    [{check, state, text, items: [{name, text}]}]: state is ok, no or unknown; texts are for people
  modes     {requirement, hostProcess, equalPower, hostPaths}; null if the parameters could not be read
  existing  {deny, warn, audit, error, namespaces, next: [{setting, name, from, to, findings, objects, atLeast}]}; null if the
            reports could not be read. setting is the parameter, or the field of the PipePolicy that name names; atLeast is true
            if the reports do not list every finding
  nodes     {windows, reporting, current}; null if the nodes could not be read

Exit code: 0 enforced everywhere, 1 not everywhere, 2 it could not be found out, or the cluster could not be asked.`,
		Example: `  pipeguard status
  pipeguard status --context production -o json`,
		Args: cli.NoArguments(""),
	}
	cli.Text(cmd, &namespace, "namespace", "n", "namespace of the probe; without it, that of the context")
	c.AddFlags(cmd)
	out := cli.AddFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		a, err := c.open(namespace)
		if err != nil {
			return cli.BadInput(err)
		}
		bar := cli.NewProgress(cmd.ErrOrStderr())
		report, err := newSurvey(a, bar, time.Now()).run(cmd.Context(), c.guardNamespace)
		bar.Clear()
		if err != nil {
			return cli.BadInput(err)
		}
		p := out.Print(cmd, report, func(p *cli.Printer) { printStatus(p, report) })
		if report.Verdict == verdictUnknown {
			return p.Done(cli.BadInput(errors.New("not everything could be found out: see the checks that are unknown")))
		}
		return p.Answer(report.Verdict == verdictEnforced)
	}
	return cmd
}

// survey asks a cluster one check after the other. Later checks use what earlier ones found.
type survey struct {
	*api
	bar    *cli.Progress
	now    time.Time
	report statusReport

	release release
}

func newSurvey(a *api, bar *cli.Progress, now time.Time) *survey {
	return &survey{api: a, bar: bar, now: now, report: statusReport{Schema: "pipeguard.dev/status/v1", Server: a.server, Revisions: []string{}, Checks: []check{}}}
}

// run returns an error if the cluster cannot be asked at all, or not about one release.
func (s *survey) run(ctx context.Context, guardNamespace string) (statusReport, error) {
	var err error
	if s.release, err = s.findRelease(ctx, guardNamespace); err != nil {
		return s.report, err
	}
	if s.release.unread != nil && !lacksRight(s.release.unread) {
		return s.report, s.release.unread // the first request: nothing else would be answered either
	}
	s.report.Namespace = s.release.namespace
	modes := s.modes(ctx) // first: they say what the configurations must not ignore
	for _, c := range []check{s.objects(), s.changes(), s.probe(ctx), s.replicasReady(ctx), s.policies(ctx), modes} {
		s.add(c)
	}
	// The floor belongs here: the ValidatingAdmissionPolicies of the release, their bindings and their revision.
	s.add(s.existing(ctx))
	s.add(s.nodes(ctx))
	if ctx.Err() != nil {
		return s.report, context.Cause(ctx)
	}
	s.report.conclude()
	return s.report, nil
}

func (s *survey) add(c check) { s.report.Checks = append(s.report.Checks, c) }
