package profiles

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// Options choose a driver, and say what differs from its own manifests. Only Name is needed.
type Options struct {
	// Name is that of the driver, such as azuredisk.
	Name string `yaml:"name"`
	// Namespace is where the driver runs.
	Namespace string `yaml:"namespace"`
	// ServiceAccount is the name of its service account, without the namespace. "*" is any, for nodes that cannot learn it.
	ServiceAccount string `yaml:"serviceAccount"`
	// Container is the name of the container that calls.
	Container string `yaml:"container"`
	// Image narrows the rules to an image, as in acl.CallerPattern; empty is any.
	Image string `yaml:"image"`
	// KubeletDir is the kubelet's directory, C:\var\lib\kubelet if empty. The driver may name paths in its plugins and pods.
	KubeletDir string `yaml:"kubeletDir"`
	// Shares are the SMB shares that the driver may map, as in acl.Rule; empty is any.
	Shares []string `yaml:"shares"`
}

// AnyServiceAccount in Options leaves the service account out of the rules.
const AnyServiceAccount = "*"

// usualKubeletDir is the kubelet's --root-dir on Windows nodes, where staging and target paths of all drivers lie.
const usualKubeletDir = `C:\var\lib\kubelet`

// Names are the profiles that there are, sorted.
func Names() []string {
	names := make([]string, len(drivers()))
	for i, d := range drivers() {
		names[i] = d.name
	}
	return names
}

// Rules returns the rules of a profile: one for the operations that name paths, confined to the kubelet's plugins and pods,
// and one for those that name disks, volumes and shares. They permit nothing beyond the operations.
func Rules(o Options) ([]acl.Rule, error) {
	at := slices.IndexFunc(drivers(), func(d driver) bool { return d.name == o.Name })
	if at < 0 {
		return nil, fmt.Errorf("there is no profile %q; there are %s", o.Name, strings.Join(Names(), ", "))
	}
	d := drivers()[at]
	for _, f := range []struct {
		field *string
		value string
	}{{&d.namespace, o.Namespace}, {&d.account, o.ServiceAccount}, {&d.container, o.Container}} {
		if f.value != "" {
			*f.field = f.value
		}
	}
	kubelet := usualKubeletDir
	if o.KubeletDir != "" {
		kubelet = strings.TrimSuffix(o.KubeletDir, `\`)
	}
	who := acl.CallerPattern{Namespace: d.namespace, ServiceAccount: d.account, Container: d.container, Image: o.Image, Assurance: "pod"}
	if d.account == AnyServiceAccount {
		who.ServiceAccount = ""
	}
	name := fmt.Sprintf("%s@%s/%s", d.name, d.namespace, d.account)
	paths := acl.Rule{Name: name + ":paths", Callers: []acl.CallerPattern{who}, Paths: []string{kubelet + `\plugins`, kubelet + `\pods`}}
	rest := acl.Rule{Name: name + ":rest", Callers: []acl.CallerPattern{who}}
	usesShares := false
	for _, s := range d.uses {
		for _, op := range s.operations {
			rule := &rest
			if access.TakesPaths(op) > 0 {
				rule = &paths
			}
			add(rule, s.group+"-*", op)
			if access.TakesShares(op) {
				rule.Shares, usesShares = o.Shares, true
			}
		}
	}
	if len(o.Shares) > 0 && !usesShares {
		return nil, fmt.Errorf("profile %s: shares: the driver maps no shares", o.Name)
	}
	var rules []acl.Rule
	for _, rule := range []acl.Rule{paths, rest} {
		if len(rule.Operations) > 0 {
			rules = append(rules, rule)
		}
	}
	return rules, nil
}

func add(rule *acl.Rule, pipe, operation string) {
	if !slices.Contains(rule.Pipes, pipe) {
		rule.Pipes = append(rule.Pipes, pipe)
	}
	if !slices.Contains(rule.Operations, operation) {
		rule.Operations = append(rule.Operations, operation)
	}
}
