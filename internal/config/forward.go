package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// report takes a fault of one field.
type report func(field, format string, args ...any)

// number reports a number out of bounds. 0 stands for one that is not set.
func (add report) number(field string, n, most int) {
	if n < 0 || n > most {
		add(field, "%d: want 1 to %d", n, most)
	}
}

// span reports a length of time out of bounds. 0 stands for one that is not set.
func (add report) span(field string, d, least, most time.Duration) {
	if d != 0 && (d < least || d > most) {
		add(field, "%v: want %v to %v", d, least, most)
	}
}

func (p *Proxy) checkLog(add report) {
	add.number("log.maxSizeMB", p.Log.MaxSizeMB, 10_000)
	add.number("log.maxBackups", p.Log.MaxBackups, 1000)
	add.number("log.maxAgeDays", p.Log.MaxAgeDays, 3650)
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
		if err := pipe.CheckName(f.Pipe); err != nil {
			add(field+".pipe", "%v", err)
		}
		if err := pipe.CheckName(f.To); err != nil {
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
	case pipe.CheckName(before+"x"+after) != nil:
		add("upstream.pipe", "%v", pipe.CheckName(before+"x"+after))
	case strings.HasPrefix(strings.ToLower(p.Upstream.Pipe), access.PipePrefix):
		add("upstream.pipe", "%q: names that begin with csi-proxy- are this proxy's own", p.Upstream.Pipe)
	}
	checkExe(add, "upstream.exe", p.Upstream.Exe)
	groups := apiserver.Groups()
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
