package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/configfile"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// PipeAccess lets more accounts open pipes than SYSTEM and administrators. An account that can open a pipe still needs a rule of the
// access list for every call. Outside Windows it does nothing: a socket is its own user's.
type PipeAccess struct {
	// Pipe is a pattern as in a rule, or the full name of a forwarded pipe. "*" leaves out system and iscsi here too.
	Pipe string `yaml:"pipe"`
	// ContainerUser lets in ContainerUser (S-1-5-93-2-2): every process-isolated container whose pod names no other user, of
	// whatever pod has the pipe mounted.
	ContainerUser bool `yaml:"containerUser"`
	// Allow are SIDs of further users, groups or services. SIDs of all accounts that have logged on, such as Everyone,
	// Authenticated Users and Users, are refused.
	Allow []string `yaml:"allow"`

	policy *acl.Policy // has the pattern as its only word, so that one judgement of patterns holds everywhere
}

// accounts are the SIDs that the entry adds.
func (a PipeAccess) accounts() []string {
	if a.ContainerUser {
		return append([]string{pipe.ContainerUser}, a.Allow...)
	}
	return a.Allow
}

func (a PipeAccess) covers(api access.API) bool { return a.policy.Check([]access.API{api}) == nil }

func (p *Proxy) checkPipes(add report) {
	for i := range p.Pipes {
		entry := &p.Pipes[i]
		field := fmt.Sprintf("pipes[%d]", i)
		policy, err := acl.New(acl.Spec{Modes: []acl.PipeMode{{Pipe: entry.Pipe, Mode: access.Enforce}}})
		if err != nil {
			add(field+".pipe", "%s", problemOf(err))
		}
		entry.policy = policy
		if len(entry.accounts()) == 0 {
			add(field, "adds no account: want containerUser: true, or accounts in allow")
		}
		if len(entry.Allow) > pipe.MaxAccounts {
			add(field+".allow", "has %d accounts, more than %d", len(entry.Allow), pipe.MaxAccounts)
			continue
		}
		for j, sid := range entry.Allow {
			switch err := pipe.CheckAccount(sid); {
			case err != nil:
				add(fmt.Sprintf("%s.allow[%d]", field, j), "%v", err)
			case slices.Contains(entry.Allow[:j], sid) || entry.ContainerUser && sid == pipe.ContainerUser:
				add(fmt.Sprintf("%s.allow[%d]", field, j), "%s is named twice", sid)
			}
		}
	}
}

// problemOf is an error of package acl without its place, which is of another text.
func problemOf(err error) string {
	if faults, ok := err.(acl.Faults); ok && len(faults) > 0 { //nolint:errorlint // it is returned as it is
		return faults[0].Problem
	}
	return err.Error()
}

// Accounts returns the SIDs that are added to each pipe, by the pipe's name without \\.\pipe\, after comparing the patterns with
// the pipes that exist. A pattern that covers none is a fault.
func (p Proxy) Accounts(known []access.API) (map[string][]string, error) {
	var faults configfile.Faults
	added := map[string][]string{}
	for i, entry := range p.Pipes {
		covered := 0
		for _, api := range known {
			if !entry.covers(api) {
				continue
			}
			covered++
			name := pipeName(api)
			for _, sid := range entry.accounts() {
				if !slices.Contains(added[name], sid) {
					added[name] = append(added[name], sid)
				}
			}
			if len(added[name]) > pipe.MaxAccounts {
				faults = append(faults, configfile.Fault{Field: fmt.Sprintf("pipes[%d].allow", i), Problem: fmt.Sprintf("pipe %s has more than %d accounts", name, pipe.MaxAccounts)})
				break
			}
		}
		if covered == 0 {
			faults = append(faults, configfile.Fault{Field: fmt.Sprintf("pipes[%d].pipe", i), Problem: fmt.Sprintf("pipe %q covers no pipe that this proxy can serve", entry.Pipe)})
		}
	}
	faults = append(faults, p.Tokens.unserved(known)...)
	if len(faults) > 0 {
		return nil, p.file.Locate(faults)
	}
	return added, nil
}

// unserved are the faults of entries under tokens that do not name a served pipe exactly, as "disk-v1" does. Patterns are not taken there.
func (t Tokens) unserved(known []access.API) (faults configfile.Faults) {
	isServed := func(name string) bool {
		return slices.ContainsFunc(known, func(api access.API) bool {
			return !strings.HasPrefix(api.Group, `\\.\pipe\`) && name == api.Group+"-"+api.Version
		})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Pipes)) {
		if !isServed(name) {
			faults = append(faults, configfile.Fault{Field: "tokens.pipes." + name, Problem: fmt.Sprintf("pipe %q is not served: want a name as disk-v1, and no pattern", name)})
		}
	}
	for i, name := range t.Roles {
		if !isServed(name) {
			faults = append(faults, configfile.Fault{Field: fmt.Sprintf("tokens.roles[%d]", i), Problem: fmt.Sprintf("pipe %q is not served: want a name as disk-v1, and no pattern", name)})
		}
	}
	return faults
}

// pipeName is the name under which an API is served.
func pipeName(api access.API) string {
	if name, forwarded := strings.CutPrefix(api.Group, `\\.\pipe\`); forwarded {
		return name
	}
	return "csi-proxy-" + api.Group + "-" + api.Version
}
