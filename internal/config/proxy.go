package config

import (
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// The identity of the file that Proxy describes.
const (
	APIVersion = "pipeguard.dev/v1alpha1"
	ProxyKind  = "ProxyConfig"
)

// Proxy is the configuration of the node proxy. Whoever can write this file decides which program may act
// on the node with the proxy's own rights: it needs the same protection as the proxy's executable.
type Proxy struct {
	// APIVersion is pipeguard.dev/v1alpha1.
	APIVersion string `yaml:"apiVersion"`
	// Kind is ProxyConfig.
	Kind string `yaml:"kind"`
	// ACL says who may call what. Without it every call is denied.
	ACL ACL `yaml:"acl"`
	// Audit says where records go.
	Audit Audit `yaml:"audit"`
	// Limits bound what callers can use up.
	Limits Limits `yaml:"limits"`

	source source
	policy *acl.Policy
}

// ACL is the access list of all pipes.
type ACL struct {
	// Pipes sets the mode of pipes. A pipe in LogOnly mode serves everybody who can open it: use it to learn
	// what a driver calls, on nodes that could do without the guard for that time.
	Pipes []PipeMode `yaml:"pipes"`
	// Rules allow; what no rule allows is denied. The order decides only which rule's name is recorded.
	Rules []Rule `yaml:"rules"`
}

// PipeMode sets the mode of the pipes that a pattern covers. Where patterns overlap, Enforce wins.
type PipeMode struct {
	// Pipe is a pattern as in a rule. "*" leaves out system and iscsi here too.
	Pipe string `yaml:"pipe"`
	// Mode is Enforce or LogOnly.
	Mode acl.Mode `yaml:"mode"`
}

// Rule allows callers to use operations of pipes.
type Rule struct {
	// Name stands in audit records. It must be unique.
	Name string `yaml:"name"`
	// Pipes are patterns such as "filesystem-v1", "filesystem-*" or "*". Rules hold for older versions as for the newest,
	// so naming one version only narrows a rule. "*" and "*-v1" never cover system and iscsi: the first stops
	// any service of the node, the second connects it to other machines. Quote a pattern that begins with a star.
	Pipes []string `yaml:"pipes"`
	// Operations are names of the newest API version, such as CreateSymlink, or "*". "*" covers FormatVolume,
	// and operations that a later version of the proxy adds.
	Operations []string `yaml:"operations"`
	// Callers are the programs that the rule trusts; each must set user or exe.
	Callers []Caller `yaml:"callers"`
}

// Caller covers the programs that agree with every field it sets.
type Caller struct {
	// User is a SID (S-1-5-18), or uid:N where there are no SIDs. S-1-5-93-2-1 is every process-isolated container that
	// runs as ContainerAdministrator, of whatever pod: a user alone tells drivers from nothing that runs beside them.
	User string `yaml:"user"`
	// Exe is the full path of the program, or DIR\* for all programs beneath a directory. Whoever may replace the
	// file, or write into the directory, is trusted as well; and a path within a container's image is the image author's choice.
	Exe string `yaml:"exe"`
	// Assurance is the least that must be proven about the caller: sid, process or pod. An exe needs process.
	Assurance string `yaml:"assurance"`
}

// Audit says where the records of all requests go.
type Audit struct {
	// Path is the file that records are appended to, on a local disk. A full disk stops all calls, so give it room
	// that pods cannot use up. One proxy writes to it at a time; a link, and a file that other users may write to, are
	// refused. If it is moved away or removed, a new one is begun in its place. Without it the command line decides.
	Path string `yaml:"path"`
	// NoSync answers a call before its record is on the disk. It is faster, and a crash of the machine may lose the records
	// of operations that were carried out.
	NoSync bool `yaml:"noSync"`
}

// Limits bound what callers can use up. Zero values mean the defaults of the proxy.
type Limits struct {
	// Connections is the number of open connections to one pipe, 256 if not set.
	Connections int `yaml:"connections"`
	// ConnectionsPerCaller is the number of those that one process may hold, 64 if not set. A driver needs two for each pipe.
	ConnectionsPerCaller int `yaml:"connectionsPerCaller"`
	// PrefaceTimeout is how long a connection may stay open before it says anything, 20s if not set.
	PrefaceTimeout time.Duration `yaml:"prefaceTimeout"`
	// StopTimeout is how long a stop waits for calls in flight before it cancels them, 20s if not set.
	StopTimeout time.Duration `yaml:"stopTimeout"`
}

// spec returns the access list in the words of package acl.
func (a ACL) spec() acl.Spec {
	var s acl.Spec
	for _, m := range a.Pipes {
		s.Modes = append(s.Modes, acl.PipeMode(m))
	}
	for _, r := range a.Rules {
		rule := acl.Rule{Name: r.Name, Pipes: r.Pipes, Operations: r.Operations}
		for _, c := range r.Callers {
			rule.Callers = append(rule.Callers, acl.CallerPattern(c))
		}
		s.Rules = append(s.Rules, rule)
	}
	return s
}
