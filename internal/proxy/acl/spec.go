package acl

import (
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Spec is an access list as it is written down. The zero Spec allows nothing.
type Spec struct {
	Modes []PipeMode
	Rules []Rule
	// Limits hold for every caller, where the rule that decides does not set its own.
	Limits access.Limits `json:",omitzero"`
}

// PipeMode sets the mode of the pipes that a pattern covers. Where patterns overlap, Enforce wins.
type PipeMode struct {
	// Pipe is a pattern as in Rule.Pipes. "*" leaves out system and iscsi here too.
	Pipe string `yaml:"pipe"`
	Mode Mode   `yaml:"mode"`
}

// Mode says what becomes of a denial.
type Mode string

// Modes. A pipe that no PipeMode covers, and one that is covered by both, is enforced.
const (
	Enforce Mode = "Enforce" // a denied call is refused
	LogOnly Mode = "LogOnly" // a denied call passes and is recorded as denied
)

// Rule allows callers to use operations of pipes. Rules only allow; what no rule allows is denied. Its keys are those of an access list in YAML.
type Rule struct {
	// Name stands in audit records and must be unique.
	Name string `yaml:"name"`
	// Pipes are patterns GROUP-VERSION such as "filesystem-v1", either half of which may be "*", or "*" alone. Rules hold for older versions as for the newest,
	// so that to name a version only narrows a rule. A pattern without a group never covers those that access.MustBeSpelled. A pipe that is not of the node
	// API has its full name, `+"`\\.\pipe\NAME`"+`, which no pattern covers.
	Pipes []string `yaml:"pipes"`
	// Implied are those of Pipes that stand for a pattern without their group, or for all operations, where the rule was
	// written: the rule names nobody on them, see Decision.Named. It is not for configurations.
	Implied []string `json:",omitempty" yaml:"-"`
	// Operations are names of the newest version of the group, such as "CreateSymlink", or "*", which covers FormatVolume and what a later version of the proxy
	// adds. A call that arrives by an older name ("LinkPath") is judged by the newest one. Methods without such a name, of a forwarded pipe or of an upstream
	// that this proxy does not know, are written "/package.Service/Method" or "/package.Service/*"; "*" covers them on pipes that have a full name only, and
	// LogOnly lets them pass there only.
	Operations []string `yaml:"operations"`
	// Callers are those whom the rule allows.
	Callers []CallerPattern `yaml:"callers"`
	// Subject is one more caller, a subject of a PipePolicy. Of its Permission RequireToken alone counts here, and its end not at all. It is not for
	// configurations.
	Subject *access.Subject `json:",omitempty" yaml:"-"`
	// Permits are those of package access: dangerous steps that no operation includes, "*" neither. NodeAccount needs Shares.
	// The rule that allows a call decides what is permitted to it.
	Permits []string `yaml:"permits"`
	// Paths are directories (`+"`C:\var\lib\kubelet\plugins`"+`). If there are any, the rule covers a call only if it names all the
	// paths that its operation takes, and each of them is one of the directories or lies in one: both ends of a link, and
	// the local path of an SMB mapping. A path that is removed, emptied, mounted over or made a link must lie in one. Operations that take no path, such as
	// FormatVolume, and calls that are forwarded cannot be confined and are not covered: they need a rule without Paths.
	Paths []string `json:",omitempty" yaml:"paths"`
	// Shares are the SMB shares that the rule's calls may name, as `+"`\\server\share`"+`: the server is a name, or "*." and the
	// end of one (`+"`\\*.file.example\data`"+`), and the share is a name, or the beginning of one and "*" (`+"`\\files.example\*`"+`).
	// Without Shares any share may be named. Operations that name no share are not affected.
	Shares []string `json:",omitempty" yaml:"shares"`
	// Services are the Windows services that the rule's calls may name, by their short names. Without Services any service may be named, but a
	// forced stop then reaches no other service: dependents that it would stop must be named here. Operations that name no
	// service are not affected.
	Services []string `json:",omitempty" yaml:"services"`
	// Limits are what each caller of the rule may use up.
	Limits access.Limits `json:",omitzero" yaml:"limits"`
	// CountedAs has the calls of all rules that say the same counted together, for Limits.CallsPerSecond. If empty, each rule counts its own. It is not for
	// configurations.
	CountedAs string `json:",omitempty" yaml:"-"`
}

// caller is the caller with a number as it is written; a subject, which is the last, in the words of a pattern.
func (r *Rule) caller(i int) CallerPattern {
	if i < len(r.Callers) {
		return r.Callers[i]
	}
	s := r.Subject
	return CallerPattern{
		Namespace: s.Namespace, ServiceAccount: strings.Join(s.ServiceAccounts, ","), Container: strings.Join(s.Containers, ","),
		Image: strings.Join(s.Images, ","), Assurance: "pod", Token: s.RequireToken,
	}
}

// CallerPattern covers the callers that agree with every field it sets. It must set User, Exe, Namespace or a
// ServiceAccount with its namespace: the other fields are chosen by whoever writes a pod, in any namespace.
// What is not known about a caller agrees with nothing.
type CallerPattern struct {
	// User is a Windows SID ("S-1-5-18") or "uid:" and a decimal number. S-1-5-93-2-1 is every process-isolated container that runs as
	// ContainerAdministrator, of whatever pod: a user alone tells drivers from nothing that runs beside them.
	User string `yaml:"user"`
	// Exe is the full path of the caller's program, or a directory and `+"`\*`"+` for all programs anywhere beneath it:
	// whoever may write there is trusted too, and a path within a container's image is the image author's choice. Windows paths are compared without
	// regard to case, by segments. An Exe covers only callers whose process was held open while its image was read.
	Exe string `yaml:"exe"`
	// Assurance is the least assurance that the caller must have: "sid", "process" or "pod". Empty is "sid", or what the
	// other fields need.
	Assurance string `yaml:"assurance"`
	// Namespace is that of the caller's pod; alone it trusts everybody who may make pods there. This field and those below it, Token aside, need assurance
	// "pod".
	Namespace string `json:",omitempty" yaml:"namespace"`
	// ServiceAccount is NAME beside a Namespace, or NAMESPACE/NAME. A node that cannot learn service accounts matches none.
	ServiceAccount string `json:",omitempty" yaml:"serviceAccount"`
	// Container is the container's name within its pod: it keeps a driver's sidecars out, and is the pod author's choice.
	Container string `json:",omitempty" yaml:"container"`
	// Image is the container's image as the runtime names it: all of it ("registry/driver:v1", "registry/driver@sha256:…"),
	// a digest alone ("sha256:…"), or a prefix and "*" that ends at a boundary ("registry/team/*", "registry/driver:*",
	// "registry/driver:v1.*"). It is never looked for in the middle of a name. A tag is what the registry says it is today; a digest cannot be moved.
	Image string `json:",omitempty" yaml:"image"`
	// HostProcess, if set, says whether the container must or must not be a HostProcess container. One that runs as SYSTEM can leave its job, and then is no
	// container any more.
	HostProcess *bool `json:",omitempty" yaml:"hostProcess"`
	// Token asks for a caller that has shown a valid token of its pod.
	Token bool `json:",omitempty" yaml:"token"`
}

// Request is what is asked, in the words of the newest API version, with the served version beside them. For a pipe that is
// not of the node API, Group is its full name, `\\.\pipe\NAME`, and Version is empty. Operation is a full method name,
// "/package.Service/Method", where the method has no other.
type Request struct {
	Group, Version, Operation string
	Caller                    caller.Caller
	// Paths are all the path arguments of the call, empty ones too.
	Paths []string
	// Shares and Services are the SMB shares (`\\server\share`, without what follows) and the services that the call names.
	Shares, Services []string
}

// Effect is what the rules say, whatever the mode makes of it.
type Effect string

// Effects.
const (
	Allow Effect = "allow"
	Deny  Effect = "deny"
)

// Decision is the answer to a Request.
type Decision struct {
	Allowed bool // the call may proceed: a rule allows it, or the pipe's mode is LogOnly
	Effect  Effect
	Mode    Mode
	Rule    string   // the rule that allows, empty in a denial
	Reason  string   // for the caller and the record
	Permits []string // of that rule; not to be changed
	// Services are those that the rule names; not to be changed. None means that the rule does not name any.
	Services []string
	// Named says that the rule names the caller for the call. Such a rule
	// spells out the operation, the group of the pipe, and either the namespace with the service account or the container, or, of a
	// process of the node that is in no container without doubt, the account and one program. An author who writes FormatVolume beside a service account means it, and one
	// who writes "*" may not have thought of it.
	Named     bool
	Limits    access.Limits // to be kept by the caller: those of the rule, and where it sets none those of all callers
	CountedAs string        // what the calls of several rules count as for CallsPerSecond; if empty, those of Rule count alone
}
