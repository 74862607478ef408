package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
)

// groups are those of the node API.
var groups = groupNames()

func groupNames() (names []string) {
	for _, g := range access.Groups() {
		names = append(names, g.Name)
	}
	return names
}

// report takes a fault of one field.
type report func(field, format string, args ...any)

func (p *Proxy) checkLog(add report) {
	for _, n := range []struct {
		field     string
		value, to int
	}{{"maxSizeMB", p.Log.MaxSizeMB, 10_000}, {"maxBackups", p.Log.MaxBackups, 1000}, {"maxAgeDays", p.Log.MaxAgeDays, 3650}} {
		if n.value < 0 || n.value > n.to {
			add("log."+n.field, "%d: want 1 to %d", n.value, n.to)
		}
	}
}

// checkBackend finds pipes that would be served twice, or that would lead back to where they come from.
func (p *Proxy) checkBackend(add report) {
	switch p.Backend {
	case "", BackendWindows, BackendMemory:
		if p.Upstream.Pipe != "" || p.Upstream.Exe != "" || p.Upstream.Groups != nil {
			add("upstream", "is used by backend: %s alone", BackendUpstream)
		}
	case BackendUpstream:
		p.checkUpstream(add)
	default:
		add("backend", "%q: want %s, %s or %s", p.Backend, BackendWindows, BackendUpstream, BackendMemory)
	}
	taken := map[string]bool{}
	for i, f := range p.Forward {
		field := fmt.Sprintf("forward[%d]", i)
		if err := checkPipeName(f.Pipe); err != nil {
			add(field+".pipe", "%v", err)
		}
		if err := checkPipeName(f.To); err != nil {
			add(field+".to", "%v", err)
		}
		checkExe(add, field+".exe", f.Exe)
		if p.Backend == BackendUpstream && p.Upstream.leadsTo(f.Pipe) {
			add(field+".pipe", "%s is a pipe of upstream: calls would come back to this proxy", f.Pipe)
		}
		for _, name := range []string{f.Pipe, f.To} {
			name = strings.ToLower(name)
			switch {
			case strings.HasPrefix(name, access.PipePrefix):
				add(field, "%s is a pipe of the node API: see backend", name)
			case name != "" && taken[name]:
				add(field, "pipe %s is named twice", name)
			}
			taken[name] = true
		}
	}
}

// behind are servers that calls are passed on to without a look at which program serves their pipes.
func (p *Proxy) behind() (faults []configfile.Fault) {
	warn := func(field, pipe, exe string) {
		if exe == "" {
			faults = append(faults, configfile.Fault{Field: field, Problem: fmt.Sprintf("calls are passed on to the program that makes %s first, whichever that is: name it with exe", pipe)})
		}
	}
	if p.Backend == BackendUpstream {
		warn("upstream", p.Upstream.Pipe, p.Upstream.Exe)
	}
	for i, f := range p.Forward {
		warn(fmt.Sprintf("forward[%d]", i), f.To, f.Exe)
	}
	return faults
}

func (p *Proxy) checkUpstream(add report) {
	before, after, ok := strings.Cut(p.Upstream.Pipe, "*")
	switch {
	case !ok || strings.Contains(after, "*"):
		add("upstream.pipe", "%q: want a name with one * in it", p.Upstream.Pipe)
	case checkPipeName(before+"x"+after) != nil:
		add("upstream.pipe", "%v", checkPipeName(before+"x"+after))
	case strings.HasPrefix(strings.ToLower(p.Upstream.Pipe), access.PipePrefix):
		add("upstream.pipe", "%q: names that begin with csi-proxy- are this proxy's own", p.Upstream.Pipe)
	}
	checkExe(add, "upstream.exe", p.Upstream.Exe)
	for i, g := range p.Upstream.Groups {
		if !slices.Contains(groups, g) || slices.Contains(p.Upstream.Groups[:i], g) {
			add(fmt.Sprintf("upstream.groups[%d]", i), "%q: want each of %s at most once", g, strings.Join(groups, ", "))
		}
	}
	if p.Upstream.Groups != nil && len(p.Upstream.Groups) == 0 {
		add("upstream.groups", "is empty: nothing would be served")
	}
}

// leadsTo says whether a pipe has a name of those behind.
func (u Upstream) leadsTo(name string) bool {
	before, after, ok := strings.Cut(strings.ToLower(u.Pipe), "*")
	name = strings.ToLower(name)
	return ok && len(name) >= len(before)+len(after) && strings.HasPrefix(name, before) && strings.HasSuffix(name, after)
}

// checkExe accepts the full path of a program, and none.
func checkExe(add report, field, exe string) {
	if exe != "" && !access.SameExe(exe, exe) {
		add(field, "%q: want the full path of a program", exe)
	}
}

// checkPipeName accepts names that need no second thought.
func checkPipeName(name string) error {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	if name == "" || len(name) > 200 || strings.Trim(name, allowed) != "" || strings.ContainsAny(name[:1], "-_.") || strings.HasSuffix(name, ".") {
		return fmt.Errorf("%q: want a name of letters, digits, dots, dashes and underscores, a letter or digit first and no dot last, without \\\\.\\pipe\\", name)
	}
	return nil
}
