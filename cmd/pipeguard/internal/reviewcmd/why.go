package reviewcmd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/manifest"
	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/policysource"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// rights are what a Windows account may do on a node.
type rights int

const (
	unknownRights rights = iota // counts as an administrator's
	ofAdministrator
	ofService
)

// account is what is known of the Windows account of a HostProcess container.
type account struct {
	rights rights
	// isNode says that it is the node itself to other machines.
	isNode bool
	means  string
}

// accounts are those that Windows brings, in upper case. For any other name the node decides: a container runs as a new local user in the group of that
// name if there is one, else as the user (https://kubernetes.io/docs/tasks/configure-pod-container/create-hostprocess-pod/,
// processToken in https://github.com/microsoft/hcsshim/blob/main/internal/jobcontainers/logon.go).
var accounts = map[string]account{
	`NT AUTHORITY\SYSTEM`:          {ofAdministrator, true, "the system itself, with every right of an administrator"},
	`NT AUTHORITY\LOCALSERVICE`:    {ofService, false, "few rights on the node but that to impersonate, and anonymous to other machines"},
	`NT AUTHORITY\LOCAL SERVICE`:   {ofService, false, "few rights on the node but that to impersonate, and anonymous to other machines"},
	`NT AUTHORITY\NETWORKSERVICE`:  {ofService, true, "few rights on the node but that to impersonate, and the node itself to other machines"},
	`NT AUTHORITY\NETWORK SERVICE`: {ofService, true, "few rights on the node but that to impersonate, and the node itself to other machines"},
	`ADMINISTRATORS`:               {ofAdministrator, false, "a new local user in the group of administrators"},
	`BUILTIN\ADMINISTRATORS`:       {ofAdministrator, false, "a new local user in the group of administrators"},
}

func accountOf(name string) account {
	if known, ok := accounts[strings.ToUpper(name)]; ok {
		return known
	}
	if name == "" {
		return account{isNode: true, means: "not declared: the user of the image or the runtime's default, not known here; taken for SYSTEM"}
	}
	return account{isNode: true, means: "a user of the node, or a new local user in the group of that name: its rights are not known here; taken for SYSTEM"}
}

// Weights, the gravest first.
var weights = []string{"critical", "high", "medium", "low"}

const (
	critical = iota
	high
	medium
	low
)

// accountReaches are what a HostProcess container reaches by its account alone. PIPES and PATHS stand for the parameters' lists of equal power, GUARDED for guarded host paths.
var accountReaches = []struct {
	holds            func(account) bool
	weight           int
	what, pipeDriver string
}{
	{account.isAdministrator, critical, "the whole node: files, registry, services and processes, those of other pods too, and the kubelet's credentials", "no"},
	{account.isAdministrator, critical, "the proxy: stop it, read its keys, leave the job and call as a process of the host", "no"},
	{account.isAdministrator, critical, "disks, volumes, links and shares without a pipe: no access list is asked, and nothing is recorded", "no: each call is asked about and recorded"},
	{account.isAdministrator, critical, "pipes of equal power: PIPES", "only those that it mounts (PG008)"},
	{account.isAdministrator, critical, "host paths of equal power: PATHS", "only those that it mounts (PG008)"},
	{account.isAdministrator, critical, "guarded host paths: GUARDED", "only those that it mounts (PG011)"},
	{func(a account) bool { return a.isNode }, high, "other machines, as the node's own account", "only shares, with the permit NodeAccount"},
	{func(a account) bool { return a.rights == ofService }, high, "SYSTEM, by one of the known ways from the right to impersonate (SeImpersonatePrivilege)", "no"},
	{func(a account) bool { return a.rights == ofService }, medium, "what every user of the node, and this account, may read and write there", "no"},
}

func (a account) isAdministrator() bool { return a.rights != ofService }

// why answers what HostProcess containers reach.
type why struct {
	judge    *judge
	params   admission.Parameters
	policies []access.Policy
	subjects []*access.Subjects // of the policies
	guard    *pipepath.Guard
	powers   *pipepath.Powers
	paths    *pipepath.Powers
	now      time.Time
}

func whySystem(cmd *cobra.Command, s policysource.Sources, o reviewOptions) error {
	w := &why{judge: &judge{namespace: o.namespace, fallback: o.fallback, ignored: o.ignored}, params: s.Objects.Parameters, now: time.Now()}
	guarded := slices.Clone(w.params.GuardedPipes)
	for _, p := range s.Objects.AccessPolicies() {
		if len(p.Pipes) > 0 {
			w.policies, w.subjects = append(w.policies, p), append(w.subjects, access.NewSubjects(p.Subjects))
			guarded = append(guarded, p.Pipes...)
		}
	}
	var err error
	if w.guard, err = pipepath.NewGuard(guarded...); err != nil {
		return cli.BadInput(err)
	}
	if w.powers, err = pipepath.NewPowers(w.params.EqualPowerPipes, w.params.EqualPowerPaths); err != nil {
		return cli.BadInput(err)
	}
	if w.paths, err = pipepath.NewHostPaths(w.params.GuardedHostPaths); err != nil {
		return cli.BadInput(err)
	}
	if err := policysource.Warn(cmd, s.Warnings); err != nil {
		return err
	}
	report := w.report(manifest.ReadFiles(o.files, cmd.InOrStdin()))
	p := o.out.Print(cmd, report, func(p *cli.Printer) { printWhy(p, report) })
	if len(report.Faults) > 0 {
		return p.Done(cli.BadInput(nil))
	}
	return p.Done(nil)
}

func (w *why) report(objects []manifest.Object, faults []manifest.Fault) whyReport {
	report := whyReport{Schema: "pipeguard.dev/why-system/v1", Objects: []whyObject{}, Faults: faultsOf(faults)}
	for _, o := range objects {
		place := reviewObject{Place: o.Place, Namespace: o.Namespace, Name: o.Name}
		request, err := w.judge.request(o, &place)
		var outline admission.Outline
		if err == nil && request != nil {
			outline, err = admission.OutlineOf(request)
		}
		if err != nil {
			report.Faults = append(report.Faults, reviewFault{o.Place, err.Error()})
			continue
		}
		out := whyObject{
			Place: o.Place, APIVersion: o.APIVersion, Kind: o.Kind, Namespace: place.Namespace, Name: place.Name,
			Containers: []whyContainer{}, Reaches: []whyReach{}, Notes: []string{},
		}
		if w.fill(&out, outline); len(out.Containers)+len(out.Notes) > 0 {
			report.Objects = append(report.Objects, out)
		}
	}
	return report
}

func (w *why) fill(out *whyObject, o admission.Outline) {
	for _, c := range o.Containers {
		if !c.HostProcess {
			continue
		}
		a := accountOf(c.RunAsUserName)
		out.Containers = append(out.Containers, whyContainer{Field: c.Field, Name: c.Name, Type: c.Type, Account: c.RunAsUserName, Means: a.means})
		w.byAccount(out, c, a, o.HostNetwork)
		w.byPipe(out, c, a, o.ServiceAccount)
	}
	w.byMount(out, o.HostPaths)
	for _, key := range o.Annotations {
		out.note(fmt.Sprintf("the annotation %q (%s) is one that a container runtime may obey; if it makes HostProcess containers, it is a PG006", key, o.MetadataField))
	}
	slices.SortStableFunc(out.Reaches, func(a, b whyReach) int {
		return cmp.Compare(slices.Index(weights, a.Weight), slices.Index(weights, b.Weight))
	})
}

func (w *why) byAccount(out *whyObject, c admission.Container, a account, hostNetwork bool) {
	how := "its account, " + cmp.Or(c.RunAsUserName, "not declared")
	lists := strings.NewReplacer("PIPES", listed(w.params.EqualPowerPipes), "PATHS", listed(w.params.EqualPowerPaths), "GUARDED", listed(w.params.GuardedHostPaths))
	for _, f := range accountReaches {
		if f.holds(a) {
			out.reach(c.Field, f.weight, lists.Replace(f.what), how, f.pipeDriver)
		}
	}
	how = "hostNetwork"
	if !hostNetwork {
		how = "hostNetwork, which the pod needs and does not set"
	}
	out.reach(c.Field, medium, "the node's network: its addresses, loopback and ports", how, "no")
}

func listed(texts []string) string {
	return cmp.Or(strings.Join(texts, ", "), "none are listed")
}

// byPipe says what the access lists of nodes still tell apart. They know a HostProcess container by its job, and ask the same subject as for one with a mount.
func (w *why) byPipe(out *whyObject, c admission.Container, a account, serviceAccount string) {
	how := "by name"
	if !a.isAdministrator() {
		how = "by name, if pipes.allow on the node has its account"
	}
	who := caller.Declared(caller.Pod{Namespace: out.Namespace, ServiceAccount: serviceAccount}, caller.Container{Name: c.Name, Image: c.Image, HostProcess: true})
	for i := range w.policies {
		p := &w.policies[i]
		what := "pipes of PipePolicy " + p.Name + ": " + strings.Join(p.Pipes, ", ")
		subject, _, _ := w.subjects[i].Match(&who, access.OfPipe, w.now)
		switch {
		case p.LogOnly:
			out.reach(c.Field, high, what, how+"; calls are recorded and never refused (LogOnly)", "the same")
		case subject == nil:
			out.reach(c.Field, high, what, how+"; its calls are refused", "no: not a subject of the policy")
		default:
			out.reach(c.Field, low, what, how+"; its calls are those of subject "+subject.Name, "yes: "+operations(subject))
			out.note("subject " + subject.Name + " of PipePolicy " + p.Name + " has, with pipes and as a HostProcess container: " + permission(subject))
		}
	}
	out.reach(c.Field, medium, "pipes that no PipePolicy names, of "+strings.Join(w.params.GuardedPipes, ", "), how, "not known here: the node's own access list decides")
}

// operations is in short what permission tells in full.
func operations(s *access.Subject) string {
	if len(s.Methods) == 0 {
		return "all operations but dangerous ones"
	}
	return fmt.Sprintf("%d operations", len(s.Methods))
}

func permission(s *access.Subject) string {
	list := func(name string, texts []string, none string) string {
		return name + " " + cmp.Or(strings.Join(texts, ", "), none)
	}
	return strings.Join([]string{
		list("operations", s.Methods, "all but those that must be named"), list("paths below", s.PathPrefixes, "the proxy's working directories"),
		list("permits", s.Permits, "none"), list("shares", s.Shares, "any"), list("services", s.Services, "any"),
	}, "; ")
}

func (w *why) byMount(out *whyObject, paths []admission.HostPath) {
	isHost := map[string]bool{}
	for _, c := range out.Containers {
		isHost[c.Field] = true
	}
	for _, v := range paths {
		weight, what := low, "host path "+v.Path
		if w.guard.Judge(v.Path).Match {
			weight, what = high, "guarded pipe "+v.Path
		} else if power := w.powers.JudgeMount(v.Path, "").Power; power != pipepath.PowerNone {
			weight, what = critical, what+", of equal power ("+string(power)+")"
		} else if at := w.paths.JudgeMount(v.Path, ""); at.Place == pipepath.PlacePath {
			weight, what = high, "guarded "+what
		} else if at.Place != pipepath.PlaceNone {
			weight, what = high, what+", "+string(at.Place)+" guarded host path "+at.Directory
		}
		for _, field := range v.Containers {
			if isHost[field] {
				out.reach(field, weight, what, fmt.Sprintf("volume %s (%s)", v.Volume, v.Field), "yes, if it mounts the same")
			}
		}
	}
}
