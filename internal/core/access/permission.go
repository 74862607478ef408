package access

import "fmt"

// Permission is what a subject may do by the pipes of its policy on a node. Admission does not ask for it.
type Permission struct {
	// Methods are the newest names of the operations; none means all.
	Methods []string `json:"methods,omitempty"`
	// PathPrefixes are the directories that calls may name; none means the working directories of the proxy.
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// RequireToken asks callers for a token of their service account.
	RequireToken bool `json:"requireToken,omitempty"`
	// Permits are dangerous steps that no method includes: Reformat, SystemDisk and NodeAccount.
	Permits []string `json:"permits,omitempty"`
	// Shares are patterns of ParseShare: the SMB shares that calls may name. None means any.
	Shares []string `json:"shares,omitempty"`
	// Services are the Windows services that calls may name. None means any, but a forced stop then reaches no other service.
	Services []string `json:"services,omitempty"`
	// Limits bound each caller.
	Limits Limits `json:"limits,omitzero"`
}

// NamesOperations says whether the permission depends on operations of the node API, or on what they name. The operations of other services' pipes are not
// known, so it permits nothing there.
func (p *Permission) NamesOperations() bool {
	return len(p.Methods)+len(p.PathPrefixes)+len(p.Shares)+len(p.Services) > 0
}

// Check reports every fault with the field that it is in, but those of Methods and PathPrefixes: which there are is for a node to say.
func (p *Permission) Check(add func(field, format string, args ...any)) {
	each := func(name string, list []string, check func(text string) error) {
		for i, text := range list {
			if err := check(text); err != nil {
				add(fmt.Sprintf("%s[%d]", name, i), "%v", err)
			}
		}
	}
	each("permits", p.Permits, func(name string) error { return CheckPermit(name, p.Shares) })
	each("shares", p.Shares, func(text string) error { _, err := ParseShare(text); return err })
	each("services", p.Services, CheckService)
	p.Limits.Check(func(field, format string, args ...any) { add("limits."+field, format, args...) })
}
