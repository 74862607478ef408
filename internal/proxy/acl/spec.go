package acl

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
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
	Pipe string      `yaml:"pipe"`
	Mode access.Mode `yaml:"mode"`
}

// Rule allows callers to use operations of pipes. Rules only allow; what no rule allows is denied. Its keys are those of an access list in YAML.
type Rule struct {
	// Name stands in audit records and must be unique.
	Name string `yaml:"name"`
	// Pipes are patterns GROUP-VERSION such as "filesystem-v1", either half of which may be "*", or "*" alone. Rules hold for older versions as for the newest,
	// so that to name a version only narrows a rule. A pattern without a group never covers those that access.MustBeSpelled. A pipe that is not of the node
	// API has its full name, `+"`\\.\pipe\NAME`"+`, which no pattern covers.
	Pipes []string `yaml:"pipes"`
	// Operations are names of the newest version of the group, such as "CreateSymlink", or "*", which covers FormatVolume and what a later version of the proxy
	// adds. A call that arrives by an older name ("LinkPath") is judged by the newest one. Methods without such a name, of a forwarded pipe or of an upstream
	// that this proxy does not know, are written "/package.Service/Method" or "/package.Service/*"; "*" covers them on pipes that have a full name only, and
	// LogOnly lets them pass there only.
	Operations []string `yaml:"operations"`
	// Callers are those whom the rule allows.
	Callers []CallerPattern `yaml:"callers"`
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
}

// CallerPattern covers the callers that agree with every field it sets. It must set User, Exe, Namespace or a
// ServiceAccount with its namespace: the other fields are chosen by the author of a pod, in any namespace.
// What is not known about a caller agrees with nothing.
type CallerPattern struct {
	// User is a Windows SID ("S-1-5-18") or "uid:" and a decimal number. S-1-5-93-2-1 is every process-isolated container that runs as
	// ContainerAdministrator, of whatever pod: a user alone tells drivers from nothing that runs beside them.
	User string `yaml:"user"`
	// Exe is the full path of the caller's program, or a directory and `+"`\*`"+` for all programs anywhere beneath it:
	// accounts that may write there are trusted too, and a path within a container's image is the image author's choice. Windows paths are compared without
	// regard to case, by segments. An Exe covers only callers whose process was held open while its image was read.
	Exe string `yaml:"exe"`
	// Assurance is the least assurance that the caller must have: "sid", "process" or "pod". Empty is "sid", or what the
	// other fields need.
	Assurance string `yaml:"assurance"`
	// Namespace is that of the caller's pod; alone it trusts every account that may make pods there. This field and those below it, Token aside, need assurance
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

// String is the pattern as it is written: the fields that are set, as KEY=VALUE with spaces between them.
func (c CallerPattern) String() string {
	var parts []string
	for _, f := range []struct{ key, value string }{
		{"user", c.User}, {"exe", c.Exe}, {"namespace", c.Namespace}, {"serviceAccount", c.ServiceAccount}, {"container", c.Container},
		{"image", c.Image}, {"assurance", c.Assurance},
	} {
		if f.value != "" {
			parts = append(parts, f.key+"="+f.value)
		}
	}
	if c.HostProcess != nil {
		parts = append(parts, fmt.Sprintf("hostProcess=%v", *c.HostProcess))
	}
	if c.Token {
		parts = append(parts, "token=true")
	}
	return strings.Join(parts, " ")
}
