package config

import (
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Known are the pipes that rules may name: those of apis, and those that this configuration forwards, by their full names.
func (p Proxy) Known(apis []*apiserver.API) []access.API {
	known := make([]access.API, 0, len(apis)+len(p.Forward))
	for _, api := range apis {
		entry := access.API{Group: api.GroupVersion().Group, Version: api.GroupVersion().Version}
		for _, op := range api.Operations() {
			entry.Operations = append(entry.Operations, op.Name)
		}
		known = append(known, entry)
	}
	for _, f := range p.Forward {
		known = append(known, access.API{Group: `\\.\pipe\` + f.Pipe})
	}
	return known
}
