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
		Long: `Checks the cluster of the kubeconfig, and changes nothing in it:

  objects   the webhook configuration for pods, workloads and PersistentVolumes: its rules cover every kind that is judged, the
            caBundle is set, no failure is ignored unless the floor is in force, no selector or match condition was added, and only
            one manager wrote it. Without the annotation in which the chart says what it made, it is unknown. With floor.mode Only
            there is none
  changes   the webhook configuration for policy objects, in the same way
  probe     whether the API server asks the webhook: a pod with the directory of all pipes is sent as a dry run to the namespace of
            --namespace, or of the context, and Pipeguard must refuse it: the webhook, or the floor that the release keeps
            before it is asked. If you may not create pods there, or another admission plugin refuses it first, the probe is a
            PodTemplate, then a Deployment, then the PodTemplate that every floor leaves to the webhook
  replicas  the webhook's replicas are ready and decide by one revision
  policies  PipePolicies and PolicyModules are ready and published; the action is Deny at admission, and Enforce on nodes
  modes     the parameters: action, hostProcess, equalPower and hostPaths are Deny, and requirement is not met by "privileged" alone;
            and which preset of the chart holds: the one that the release names, or the nearest, with what differs from it
  floor     where floor.mode is Always or Only, the ValidatingAdmissionPolicies and their bindings are there, as the policies of the
            cluster say, and of the revision by which the replicas decide; PolicyModules, which no floor can say, are named
  existing  the reports of the background scan: existing objects that would be refused now. Below the table, the next step: existing
            objects with findings that are recorded or warned about, by the setting that would refuse them, and by the next preset
  nodes     every Windows node has reported lately, and enforces the published bundle and the webhook's revision

A check is "ok", "no", or "unknown" if it could not be made, for example because you may not read an object.

With -o json it prints one object:
  schema    "pipeguard.dev/status/v1"
  verdict   enforced, not-enforced or unknown
  server, namespace    the API server, and the namespace of the webhook
  revisions            the revisions by which the replicas decide
  checks    [{check, state, text, items: [{name, text}]}]: state is ok, no or unknown; the texts are for people
  modes     {action, requirement, hostProcess, equalPower, hostPaths}; null if the parameters could not be read
  preset    {name, differs: [{setting, preset, now}]}: the settings are values of the chart; null if the parameters could not be read
  existing  {deny, warn, audit, error, namespaces, next: [{setting, name, from, to, findings, objects, atLeast}]}; null if the
            reports could not be read. setting is a parameter, a field of the PipePolicy that name names, or "preset"; atLeast is true if
            the reports do not list every finding
  nodes     {windows, reporting, current}; null if the nodes could not be read

Exit code: 0 enforced everywhere, 1 not enforced everywhere, 2 unknown, or the cluster could not be asked.`,
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
			return p.Done(cli.BadInput(errors.New("some checks could not be made: see those that are unknown")))
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

	release      release
	floorMode    floorOf // as the configuration has it; empty if that is not known
	floorInForce bool    // the API server refuses by the policies that decide, also while no replica answers
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
	replicas := s.replicasReady(ctx) // first: they say by which revision the cluster decides,
	kept := s.floor(ctx)             // and with modes and floor what the configurations may ignore
	modes := s.modes(ctx)
	for _, c := range []check{s.objects(ctx), s.changes(ctx), s.probe(ctx), replicas, s.policies(ctx), modes, kept} {
		s.add(c)
	}
	s.add(s.existing(ctx))
	s.add(s.nodes(ctx))
	if ctx.Err() != nil {
		return s.report, context.Cause(ctx)
	}
	s.report.conclude()
	return s.report, nil
}

func (s *survey) add(c check) { s.report.Checks = append(s.report.Checks, c) }
