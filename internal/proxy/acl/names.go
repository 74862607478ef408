package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// takesShares and takesServices are the operations that name SMB shares and services, by their newest names.
var (
	takesShares   = []string{"NewSmbGlobalMapping", "RemoveSmbGlobalMapping"}
	takesServices = []string{"GetService", "StartService", "StopService"}
)

// TakesShares says whether an operation of the node API names an SMB share, and TakesServices whether it names a service.
func TakesShares(operation string) bool { return slices.Contains(takesShares, operation) }

// TakesServices says whether an operation of the node API names a service of the host.
func TakesServices(operation string) bool { return slices.Contains(takesServices, operation) }

// share is a pattern of Rule.Shares in lower case. A server that begins with "*." and a share that ends with "*" stand for
// many; the star is gone from both texts.
type share struct {
	server, name         string
	anyServer, anyEnding bool
}

// maxShare and maxService bound patterns, in bytes. No server and share has a longer name together, and no service.
const (
	maxShare   = 512
	maxService = 256
)

// parseShare accepts \\server\share, with one star at the beginning of the server or at the end of the share or both.
func parseShare(text string) (share, error) {
	server, name, ok := cutShare(safepath.Lower(text))
	if !ok || len(text) > maxShare {
		return share{}, fmt.Errorf(`share %q: want \\server\share, such as \\files.example\data or \\files.example\*`, text)
	}
	s := share{server: server, name: name}
	if suffix, isAny := strings.CutPrefix(server, "*."); isAny {
		s.server, s.anyServer = "."+suffix, true
	}
	if prefix, isAny := strings.CutSuffix(name, "*"); isAny {
		s.name, s.anyEnding = prefix, true
	}
	switch {
	case strings.Contains(s.server, "*") || strings.Trim(s.server, ".") == "":
		return share{}, fmt.Errorf(`share %q: a star in the server stands for the beginning of its name, before a dot: \\*.files.example\data`, text)
	case strings.Contains(s.name, "*"):
		return share{}, fmt.Errorf(`share %q: a star in the share stands for the end of its name: \\files.example\pvc-*`, text)
	}
	return s, nil
}

// cutShare takes \\server\share apart. What has more or fewer parts names no share.
func cutShare(text string) (server, name string, ok bool) {
	rest, ok := strings.CutPrefix(text, `\\`)
	server, name, hasName := strings.Cut(rest, `\`)
	return server, name, ok && hasName && server != "" && name != "" && !strings.ContainsAny(rest, `/:?"<>|`) && !strings.Contains(name, `\`)
}

// holds compares with a share as a request names it. A star for the server's beginning stands for at least one character.
func (s share) holds(text string) bool {
	server, name, ok := cutShare(safepath.Lower(text))
	if !ok {
		return false
	}
	isServer := !s.anyServer && server == s.server || s.anyServer && len(server) > len(s.server) && strings.HasSuffix(server, s.server)
	return isServer && (name == s.name || s.anyEnding && strings.HasPrefix(name, s.name))
}

// includes says that every share that o holds is one that s holds.
func (s share) includes(o share) bool {
	server := s.server == o.server && s.anyServer == o.anyServer || s.anyServer && strings.HasSuffix(o.server, s.server) && len(o.server) > len(s.server)
	name := s.name == o.name && s.anyEnding == o.anyEnding || s.anyEnding && strings.HasPrefix(o.name, s.name)
	return server && name
}

func (r *rule) compileNames(field string, spec Rule, faults *Faults) {
	for j, text := range spec.Shares {
		s, err := parseShare(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.shares[%d]", field, j), "%v", err)
		}
		r.shares = append(r.shares, s)
	}
	for j, name := range spec.Services {
		if name == "" || len(name) > maxService || strings.ContainsAny(name, `/\*?`) || strings.TrimSpace(name) != name {
			faults.add(fmt.Sprintf("%s.services[%d]", field, j), "service %q: want the short name of one service, such as MSiSCSI", name)
		}
		r.services = append(r.services, name)
	}
	if spec.Shares != nil && len(spec.Shares) == 0 {
		faults.add(field+".shares", "is empty: leave it out to allow every share")
	}
	if spec.Services != nil && len(spec.Services) == 0 {
		faults.add(field+".services", "is empty: leave it out to allow every service")
	}
}

// nameOutside says which share or service of the call the rule does not name; empty if it names them all. An operation that
// takes a share or a service and names none is outside of a rule that lists them.
func (r *rule) nameOutside(q *query) string {
	if len(r.shares) > 0 && TakesShares(q.operation) {
		if len(q.shares) == 0 {
			return "the call names no share, and the rule is for certain shares only"
		}
		for _, text := range q.shares {
			if !slices.ContainsFunc(r.shares, func(s share) bool { return s.holds(text) }) {
				return string(appendQuoted(nil, text)) + " is not among its shares"
			}
		}
	}
	if len(r.services) > 0 && TakesServices(q.operation) {
		if len(q.services) == 0 {
			return "the call names no service, and the rule is for certain services only"
		}
		for _, name := range q.services {
			if !slices.ContainsFunc(r.services, func(s string) bool { return safepath.EqualFold(s, name) }) {
				return string(appendQuoted(nil, name)) + " is not among its services"
			}
		}
	}
	return ""
}

// includesNames says that r holds every share and service that o does.
func (r *rule) includesNames(o *rule) bool {
	if len(r.shares) > 0 {
		for _, s := range o.shares {
			if !slices.ContainsFunc(r.shares, func(t share) bool { return t.includes(s) }) {
				return false
			}
		}
	}
	if len(r.services) > 0 {
		for _, s := range o.services {
			if !slices.ContainsFunc(r.services, func(t string) bool { return safepath.EqualFold(s, t) }) {
				return false
			}
		}
	}
	return (len(r.shares) == 0 || len(o.shares) > 0) && (len(r.services) == 0 || len(o.services) > 0)
}

// warnNames finds lists that confine nothing.
func (p *Policy) warnNames(field string, i int, w *Faults) {
	r := &p.rules[i]
	has := func(taking []string) bool {
		return r.all || slices.ContainsFunc(r.operations, func(op string) bool { return slices.Contains(taking, op) })
	}
	if len(r.shares) > 0 && !has(takesShares) {
		w.add(field+".shares", "confines nothing: no operation of this rule names a share")
	}
	if len(r.services) > 0 && !has(takesServices) {
		w.add(field+".services", "confines nothing: no operation of this rule names a service")
	}
}
