package config

import (
	"errors"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/request"
)

// RequestPolicy is the policy in Rego that is asked about each call which the access list has allowed. The built-in one
// refuses to start or stop services, to partition or format, and to take a disk offline, to whoever is not named.
type RequestPolicy struct {
	// Named says who may do that, by group, operation, and then pods by namespace and service account, or hosts by account:
	// named.system.StopService.pods.kube-system.csi-iscsi-node is a list of {containers: […], services: […]}, and
	// named.disk.PartitionDisk.hosts.S-1-5-18 one of {programs: […]}. The service account "*" is any, and needs containers.
	// Rules of acl that spell out such an operation beside a namespace and its service account or container, or beside a user and
	// exe, name that caller too, and so do profiles.
	Named map[string]any `yaml:"named"`
	// Modules is a directory of Rego that refuses more than the built-in policy does, with its tests, which must pass.
	// Whoever can write there can stop every call.
	Modules string `yaml:"modules"`
}

// Parameters are the data of the request policy: who is named here and by the rules of the access list.
func (p Proxy) Parameters() map[string]any {
	return request.Data(map[string]any{"named": request.Merged(request.NamedBy(p.Spec()), p.RequestPolicy.Named)})
}

func (p *Proxy) checkRequestPolicy(add report) {
	if p.RequestPolicy.Named == nil {
		return
	}
	var faults acl.Faults
	err := request.CheckNamed(p.RequestPolicy.Named)
	if err != nil && !errors.As(err, &faults) {
		faults = acl.Faults{{Field: "named", Problem: err.Error()}}
	}
	for _, f := range faults {
		add("requestPolicy."+f.Field, "%s", f.Problem)
	}
}
