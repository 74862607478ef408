package config

// RequestPolicy is the policy in Rego that is asked about each call which the access list has allowed. The built-in one
// refuses to start or stop services, to partition or format, and to take a disk offline, to callers that the access list does
// not name: rules that spell out such an operation beside a namespace and its service account or container, or beside a user and
// exe, name that caller, and so do profiles.
type RequestPolicy struct {
	// Named was a second list of named callers. It is no longer accepted.
	Named any `yaml:"named"`
	// Modules is a directory of Rego that refuses more than the built-in policy does, with its tests, which must pass.
	// An account that can write there can stop every call.
	Modules string `yaml:"modules"`
}

func (p *Proxy) checkRequestPolicy(add report) {
	if p.RequestPolicy.Named != nil {
		add("requestPolicy.named", "is gone: a rule in acl.rules that spells out the operation beside the caller names it, with services for those that it may control")
	}
}
