package acl

import (
	"fmt"
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

func (r *rule) compileNames(field string, spec Rule, faults *Faults) {
	for j, text := range spec.Shares {
		s, err := access.ParseShare(text)
		if err != nil {
			faults.add(fmt.Sprintf("%s.shares[%d]", field, j), "%v", err)
		}
		r.shares = append(r.shares, s)
	}
	for j, name := range spec.Services {
		if err := access.CheckService(name); err != nil {
			faults.add(fmt.Sprintf("%s.services[%d]", field, j), "%v", err)
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
	if len(r.shares) > 0 && access.TakesShares(q.operation) {
		if len(q.shares) == 0 {
			return "the call names no share, and the rule is for certain shares only"
		}
		for _, text := range q.shares {
			if !slices.ContainsFunc(r.shares, func(s access.Share) bool { return s.Holds(text) }) {
				return string(appendQuoted(nil, text)) + " is not among its shares"
			}
		}
	}
	if len(r.services) > 0 && access.TakesServices(q.operation) {
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
			if !slices.ContainsFunc(r.shares, func(t access.Share) bool { return t.Includes(s) }) {
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
	has := func(takes func(operation string) bool) bool { return r.all || slices.ContainsFunc(r.operations, takes) }
	if len(r.shares) > 0 && !has(access.TakesShares) {
		w.add(field+".shares", "confines nothing: no operation of this rule names a share")
	}
	if len(r.services) > 0 && !has(access.TakesServices) {
		w.add(field+".services", "confines nothing: no operation of this rule names a service")
	}
}
