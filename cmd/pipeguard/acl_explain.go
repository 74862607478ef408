package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// explainOptions are the flags of explain.
type explainOptions struct {
	callers, paths          []string
	pipe, method, audit, id string
}

func newACLExplain() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain FILE",
		Short: "Say which rule decides a call and why, and of each other rule why not",
		Long: `Asks the access list of FILE as the proxy would ask it. The request comes from the command line, or from a record of an
audit log. A record does not tell the container, its image and whether a token was shown: add them with --caller, which
is laid over the record.

  --caller  KEY=VALUE, several with commas or in several flags: assurance, user, exe, namespace, serviceAccount (NAME or
            NAMESPACE/NAME), pod, container, image, hostProcess, token. What is left out is not known to the proxy. An
            assurance that is left out is the one that the other keys come with.
  --pipe    filesystem-v1, csi-proxy-filesystem-v1, or the full name of a forwarded pipe
  --method  as served by that pipe, or the newest name; /package.Service/Method on a forwarded pipe
  --path    each path argument of the call: both ends of a link, the local path of an SMB mapping

The table has one row for each rule, in their order: RESULT is decides, covers (an earlier rule decides) or no, and WHY
is the caller that agrees, or the first thing that does not.

With -o json it prints one object:
  schema    "pipeguard.dev/acl-explain/v1"
  allowed   the call would proceed: effect is allow, or mode is LogOnly
  effect, mode, rule, reason, permits, limits, revision    as in audit records
  request   what was asked, in the words of the newest API version
  rules     [{rule, covers, decides, why}]

Exit code: 0 allowed, 1 denied, 2 the question or FILE has a fault.`,
		Example: `  pipeguard acl explain proxy.yaml --pipe filesystem-v1beta1 --method LinkPath \
      --caller serviceAccount=kube-system/csi-smb-node-sa,container=smb \
      --path 'C:\var\lib\kubelet\plugins\x' --path 'C:\var\lib\kubelet\pods\y'
  pipeguard acl explain proxy.yaml --from-audit audit.jsonl --id 01J9ZK3V`,
		Args: argument("a configuration of a proxy"),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.callers, "caller", nil, "what is known about the caller, as KEY=VALUE,KEY=VALUE")
	f.StringArrayVar(&o.paths, "path", nil, "a path argument of the call")
	f.StringVar(&o.pipe, "pipe", "", "pipe that is called")
	f.StringVar(&o.method, "method", "", "method that is called")
	f.StringVar(&o.audit, "from-audit", "", "take the request from a record of this file")
	f.StringVar(&o.id, "id", "", "id of the request in --from-audit")
	out := addTableFormat(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		l, err := loadList(cmd, args[0])
		if err != nil {
			return err
		}
		if l.policy == nil {
			return badInput(errors.New(strings.Join(l.faults, "\n")))
		}
		request, err := o.request(cmd, &l, args[0])
		if err != nil {
			return badInput(err)
		}
		return aclExplain(cmd, l.policy, request, out.format)
	}
	return cmd
}

func (o explainOptions) request(cmd *cobra.Command, l *list, file string) (acl.Request, error) {
	asked, err := parseCallers(o.callers)
	if err != nil {
		return acl.Request{}, err
	}
	if o.audit == "" {
		if o.id != "" {
			return acl.Request{}, errors.New("--id needs --from-audit")
		}
		r, err := l.request(o.pipe, o.method)
		r.Caller, r.Paths = asked, o.paths
		return r, err
	}
	switch {
	case o.id == "":
		return acl.Request{}, errors.New("--from-audit needs the --id of a request")
	case o.pipe != "" || o.method != "" || o.paths != nil:
		return acl.Request{}, errors.New("--from-audit has the pipe, the method and the paths: leave them out")
	case o.audit == "-" && file == "-":
		return acl.Request{}, errors.New("standard input can be one file only")
	}
	r, err := recordedRequest(cmd, o.audit, o.id)
	if err == nil && o.callers != nil {
		r.Caller = overlay(r.Caller, asked, o.callers)
	}
	return r, err
}

// overlay puts what was said on the command line over what a record says.
func overlay(c, over acl.Caller, said []string) acl.Caller {
	for _, f := range []struct {
		to   *string
		from string
	}{
		{&c.User, over.User}, {&c.Exe, over.Exe}, {&c.Namespace, over.Namespace}, {&c.ServiceAccount, over.ServiceAccount},
		{&c.Pod, over.Pod}, {&c.Container, over.Container}, {&c.Image, over.Image},
	} {
		if f.from != "" {
			*f.to = f.from
		}
	}
	if strings.Contains(","+strings.Join(said, ","), ",assurance=") {
		c.Assurance = over.Assurance
	}
	c.HostProcess, c.Token = c.HostProcess || over.HostProcess, c.Token || over.Token
	return c
}

// request finds the pipe and puts the method in the words of the newest version.
func (l *list) request(pipe, method string) (acl.Request, error) {
	if pipe == "" || method == "" {
		return acl.Request{}, errors.New("name a pipe with --pipe and a method with --method, or a record with --from-audit and --id")
	}
	for _, f := range l.settings.Forward {
		if strings.EqualFold(pipe, fullPipe+f.Pipe) || strings.EqualFold(pipe, f.Pipe) {
			return acl.Request{Group: fullPipe + f.Pipe, Operation: method}, nil
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
		r := acl.Request{Group: gv.Group, Version: gv.Version}
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
		return acl.Request{}, fmt.Errorf("%s has no method %q; \"pipeguard call --list --pipe %s\" names those it has", gv, method, gv)
	}
	return acl.Request{}, fmt.Errorf("no pipe %q is known; \"pipeguard call --list\" names those that are, beside the forwarded ones of the file", pipe)
}
