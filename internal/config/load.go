package config

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// remedies of a 0 in a file.
var remedies = configfile.Remedies{reflect.TypeFor[access.Limits](): "leave it out for no bound of this kind here"}

// LoadProxy reads a file. A file that does not exist, and an empty name, give a configuration whose IsMissing is true
// and whose policy denies every call: a node whose file is late is closed, not open. Anything else that is wrong with
// the file is an error, which names every fault with its line.
func LoadProxy(file string) (Proxy, error) {
	if file == "" {
		return Proxy{}, nil
	}
	text, err := configfile.Read(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Proxy{}, nil
	}
	if err != nil {
		return Proxy{}, fmt.Errorf("read configuration %s: %w", file, err)
	}
	return ParseProxy(file, text)
}

// ParseProxy is LoadProxy for text that has been read from file.
func ParseProxy(file string, text []byte) (Proxy, error) {
	var p Proxy
	read, err := configfile.Decode(file, ProxyKind, text, &p)
	if err != nil {
		return Proxy{}, err
	}
	p.file, p.digest = read, digest(text)
	return p, errors.Join(p.file.CheckText(p, remedies), p.check())
}

// IsMissing says that there was no file, so that every call is denied.
func (p Proxy) IsMissing() bool { return p.file.IsMissing() }

// Digest stands for the text that was read.
func (p Proxy) Digest() Digest { return p.digest }

// Policy returns the access list, after comparing it with the APIs that exist.
func (p Proxy) Policy(known []access.API) (*acl.Policy, error) {
	if p.policy == nil {
		return acl.DenyAll(), nil
	}
	if err := p.policy.Check(known); err != nil {
		return nil, p.file.Locate(p.ACL.place(err))
	}
	return p.policy, nil
}

// check sets the policy and returns all faults of a decoded file.
func (p *Proxy) check() error {
	var faults configfile.Faults
	add := report(func(field, format string, args ...any) {
		faults = append(faults, configfile.Fault{Field: field, Problem: fmt.Sprintf(format, args...)})
	})
	add.number("limits.connections", p.Limits.Connections, 4096)
	add.number("limits.connectionsPerCaller", p.Limits.ConnectionsPerCaller, 4096)
	add.span("limits.prefaceTimeout", p.Limits.PrefaceTimeout, time.Second, 10*time.Minute)
	add.span("limits.stopTimeout", p.Limits.StopTimeout, time.Second, 10*time.Minute)
	add.number("limits.operations", p.Limits.Operations, 1024)
	add.number("limits.waiting", p.Limits.Waiting, 4096)
	add.span("limits.operationTimeout", p.Limits.OperationTimeout, time.Second, 24*time.Hour)
	p.checkPaths(add)
	p.checkLog(add)
	p.checkBackend(add)
	p.checkCallers(add)
	p.checkPipes(add)
	p.checkBundle(add)
	p.checkAudit(add)
	p.checkRequestPolicy(add)
	spec, wrong := p.ACL.spec()
	for _, f := range wrong {
		add("acl."+f.Field, "%s", f.Problem)
	}
	policy, err := acl.New(spec)
	if err != nil {
		faults = append(faults, p.ACL.place(err)...)
	}
	if len(faults) > 0 {
		return p.file.Locate(faults)
	}
	p.policy = policy
	return nil
}

// Warnings are what is in order and yet perhaps not meant, each with its place in the file. They stop nothing.
func (p Proxy) Warnings() []string {
	if p.policy == nil {
		return nil
	}
	var lines []string
	for _, f := range p.policy.Warnings() {
		lines = append(lines, p.file.Line(configfile.Fault{Field: "acl." + p.ACL.fieldOf(f.Field), Problem: f.Problem}))
	}
	for _, f := range slices.Concat(p.Audit.warnings(), p.behind()) {
		lines = append(lines, p.file.Line(f))
	}
	return slices.Compact(lines) // two rules of a profile have one place
}
