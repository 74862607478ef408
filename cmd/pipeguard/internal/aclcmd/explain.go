package aclcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// question holds the flags that describe a call.
type question struct {
	callers, paths          []string
	shares, services        []string
	pipe, method, audit, id string

	doubt error // what speaks against the log of audit
}

// questionHelp describes those flags.
const questionHelp = `  --caller  KEY=VALUE, several with commas or in several flags: assurance, user, exe, namespace, serviceAccount (NAME or
            NAMESPACE/NAME), pod, container, image, hostProcess, token, doubt. What is left out is not known to the proxy. An
            assurance that is left out is the one that the other keys come with. Beside a record they are laid over it.
            doubt=true is a process of which the proxy cannot say whether it is in a container
  --pipe    filesystem-v1, csi-proxy-filesystem-v1, or the full name of a forwarded pipe
  --method  as served by that pipe, or the newest name; /package.Service/Method on a forwarded pipe
  --path    each path argument of the call: both ends of a link, the local path of an SMB mapping
  --share   SMB share that the call names, \\server\share
  --service Windows service that the call names`

func (q *question) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&q.callers, "caller", nil, "what is known about the caller, as KEY=VALUE,KEY=VALUE")
	f.StringArrayVar(&q.paths, "path", nil, "a path argument of the call")
	f.StringArrayVar(&q.shares, "share", nil, "SMB share that the call names")
	f.StringArrayVar(&q.services, "service", nil, "Windows service that the call names")
	cli.Text(cmd, &q.pipe, "pipe", "", "pipe that is called")
	cli.Text(cmd, &q.method, "method", "", "method that is called")
	cli.Text(cmd, &q.audit, "from-audit", "", "take the request from a record of this log: a directory, a file, or -")
	cli.Text(cmd, &q.id, "id", "", "id of the request in --from-audit")
}

// isAsked says whether any of the flags is set.
func (q *question) isAsked() bool {
	return q.callers != nil || q.paths != nil || q.shares != nil || q.services != nil || q.pipe != "" || q.method != "" || q.audit != "" || q.id != ""
}

func newExplain() *cobra.Command {
	var q question
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say which rule decides a call and why, and of each other rule why not",
		Long: `Asks the access list of FILE as the proxy would ask it. The request comes from the command line, or from a record of an
audit log, with all that was known about the caller. Of a call that the list allows, a note says if the request policy of
FILE refuses it; without a record the fields of the request are empty for that. The answer is the list's alone.

` + questionHelp + `

The table has one row for each rule, in their order: RESULT is decides, covers (an earlier rule decides) or no, and WHY
is the caller that agrees, or the first thing that does not. Of the rule that decides it also says if no rule names the caller
for the operation: the built-in request policy refuses some operations to all other callers.

With -o json it prints one object:
  schema    "pipeguard.dev/acl-explain/v1"
  allowed   the call would proceed: effect is allow, or mode is LogOnly
  named     a rule names the caller for the operation, which the request policy wants for some
  effect, mode, rule, reason, permits, limits, revision    as in audit records
  request   the question, with the names of the newest API version
  rules     [{rule, covers, decides, names, why}]
  notes     texts: what else decides about the call

Exit code: 0 allowed, 1 denied, 2 the question or FILE has a fault. With --from-audit, 1 if the log was changed, and 3 if it
is incomplete or contradicts itself, as for "pipeguard audit check", whatever the answer; standard error says so.`,
		Example: `  pipeguard acl explain proxy.yaml --pipe filesystem-v1beta1 --method LinkPath \
      --caller serviceAccount=kube-system/csi-smb-node-sa,container=smb \
      --path 'C:\var\lib\kubelet\plugins\x' --path 'C:\var\lib\kubelet\pods\y'
  pipeguard acl explain proxy.yaml --from-audit /var/log/pipeguard/audit --id BQ5WDWNJNUOT6EY4VKEBLCQCXR`,
		Args: cli.Argument("a configuration of a proxy"),
	}
	q.add(cmd)
	out := cli.AddFormat(cmd, "table", "text")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := loadList(cmd, args[0])
		if err != nil {
			return err
		}
		return q.answer(cmd, &l, args[0], out, printExplain)
	}
	return cmd
}

// answer asks a list that has no faults.
func (q *question) answer(cmd *cobra.Command, l *list, file string, out *cli.Choice, print func(*cli.Printer, explainReport)) error {
	if l.policy == nil {
		var faults []error
		for _, line := range slices.Concat(l.faults, l.hints) {
			faults = append(faults, errors.New(line))
		}
		return cli.BadInput(errors.Join(faults...))
	}
	r, e, err := q.request(cmd, l, file)
	if err != nil {
		return cli.BadInput(errors.Join(err, q.doubt))
	}
	notes, err := l.notes(cmd.Context(), r, e)
	if err != nil {
		return cli.BadInput(errors.Join(err, q.doubt))
	}
	report := explain(l.policy, r, notes)
	p := out.Print(cmd, report, func(p *cli.Printer) { print(p, report) })
	if q.doubt != nil {
		return p.Done(q.doubt)
	}
	return p.Answer(report.Allowed)
}

// notes name what else decides about a call. The record is nil for a call that was not recorded.
func (l *list) notes(ctx context.Context, r access.Call, e *audit.Event) (notes []string, err error) {
	switch {
	case e != nil && e.Decision != nil && e.Decision.Policy != nil && e.Decision.Policy.Bundle != 0:
		notes = append(notes, fmt.Sprintf("this call was decided by a bundle, revision %d, and not by such a list", e.Decision.Policy.Bundle))
	case l.settings.Bundle.IsSet():
		notes = append(notes, "on a pipe that the bundle's PipePolicies guard, the bundle decides and not this list")
	}
	d := l.policy.Decide(r)
	if d.Effect != access.Allow { // then nothing else is asked
		return notes, nil
	}
	if e == nil {
		e = eventOf(r)
	}
	note, err := afterList(ctx, l.settings, e, d.Named)
	if note != "" {
		notes = append(notes, note)
	}
	return notes, err
}

func (q *question) request(cmd *cobra.Command, l *list, file string) (r access.Call, e *audit.Event, err error) {
	switch {
	case q.audit == "" && q.id != "":
		return r, nil, errors.New("--id needs --from-audit")
	case q.audit == "":
		if r, err = l.request(q.pipe, q.method); err != nil {
			return r, e, err
		}
		r.Paths, r.Services = q.paths, q.services
		for _, share := range q.shares {
			r.Shares = append(r.Shares, apiserver.ShareSpelling(share))
		}
	case q.id == "":
		return r, nil, errors.New("--from-audit needs the --id of a request; \"pipeguard audit show --wide\" lists ids")
	case q.pipe != "" || q.method != "" || q.paths != nil || q.shares != nil || q.services != nil:
		return r, nil, errors.New("--from-audit has the pipe, the method, the paths, the share and the service: leave them out")
	case q.audit == "-" && file == "-":
		return r, nil, errors.New("standard input can be one file only")
	default:
		if r, e, q.doubt, err = recordedRequest(cmd, q.audit, q.id); err != nil {
			return r, e, err
		}
	}
	r.Caller, err = parseCallers(q.callers, r.Caller)
	return r, e, err
}

// request finds the pipe, and the name of the method in the newest version.
func (l *list) request(pipe, method string) (access.Call, error) {
	if pipe == "" || method == "" {
		return access.Call{}, errors.New("name a pipe with --pipe and a method with --method, or a record with --from-audit and --id")
	}
	for _, f := range l.settings.Forward {
		if strings.EqualFold(pipe, fullPipe+f.Pipe) || strings.EqualFold(pipe, f.Pipe) {
			return access.Call{Group: fullPipe + f.Pipe, Operation: method}, nil
		}
	}
	name := pipe
	if len(pipe) > len(fullPipe) && strings.EqualFold(pipe[:len(fullPipe)], fullPipe) {
		name = pipe[len(fullPipe):]
	}
	for _, api := range l.apis {
		gv := api.GroupVersion()
		if !strings.EqualFold(name, gv.String()) && !strings.EqualFold(name, gv.Pipe()) {
			continue
		}
		r := access.Call{Group: gv.Group, Version: gv.Version}
		if strings.HasPrefix(method, "/") { // what an upstream may have and this program does not know
			r.Operation = method
			for _, m := range api.Methods() {
				if m.FullMethod == method {
					r.Operation = m.Operation.Name
				}
			}
			return r, nil
		}
		if m, ok := api.Method(method); ok {
			r.Operation = m.Operation.Name
			return r, nil
		}
		for _, op := range api.Operations() {
			if op.Name == method {
				r.Operation = op.Name
				return r, nil
			}
		}
		return access.Call{}, fmt.Errorf("%s has no method %q; \"pipeguard call --list --pipe %s\" names those it has", gv, method, gv)
	}
	return access.Call{}, fmt.Errorf("no pipe %q is known; \"pipeguard call --list\" names those that are, beside the forwarded ones of the file", pipe)
}
