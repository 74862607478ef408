package access

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Pattern is what a rule or a subject asks of a caller, in the spelling by which fields are compared. What is empty is not asked for; of a list the
// caller has one. What is not known about a caller agrees with nothing.
type Pattern struct {
	User      string // of ParseUser
	Exe       string // of ParseExe
	Namespace string
	// Accounts are service accounts of Namespace, and Containers names of containers.
	Accounts, Containers []string
	// Images are of ParseImage and SpellImage. An empty one means no image.
	Images      []string
	HostProcess *bool
	// OnNode leaves out containers, but for HostProcess ones.
	OnNode bool
	Token  bool
	// Least is the least level of assurance.
	Least int
}

// Field is what a Pattern asks of a caller.
type Field string

// Fields in the order in which they are compared.
const (
	FieldAssurance      Field = "assurance"
	FieldUser           Field = "user"
	FieldExe            Field = "exe"
	FieldNamespace      Field = "namespace"
	FieldServiceAccount Field = "serviceAccount"
	FieldContainer      Field = "container"
	FieldImage          Field = "image"
	FieldHostProcess    Field = "hostProcess"
	FieldRunAsUserName  Field = "runAsUserName"
	FieldHostPath       Field = "hostPath"
	FieldToken          Field = "token"
)

// known is a Caller with its fields folded, and without those that its assurance does not carry. An empty one is unknown.
type known struct {
	who
	container, image string
	hostProcess      bool
	token            bool
	level            int
	mayBeInside      bool // something is said of a pod or a container, whether or not the assurance carries it, or is in doubt
}

// fold reads a caller of a pipe. One that is only declared is unknown.
func fold(c *caller.Caller) known {
	out := known{level: c.Assurance.Level(), token: c.Token}
	out.mayBeInside = c.Doubt != "" || c.HasPod()
	if out.level == caller.LevelNone {
		return out
	}
	out.user = foldUser(c.User.SID)
	if out.level >= caller.LevelProcess {
		out.exe = foldExe(c.Process.Exe)
	}
	if out.level >= caller.LevelPod {
		out.foldPod(c)
	}
	return out
}

func (k *known) foldPod(c *caller.Caller) {
	if !caller.IsLabel(c.Pod.Namespace) {
		return
	}
	k.namespace, k.account = c.Pod.Namespace, c.Pod.ServiceAccount
	k.container, k.hostProcess = c.Container.Name, c.Container.HostProcess
	if IsImage(c.Container.Image) {
		k.image = c.Container.Image
	}
}

// needsPod says whether the pattern asks for what is known of pods alone.
func (p *Pattern) needsPod() bool {
	return p.Namespace != "" || len(p.Accounts)+len(p.Containers)+len(p.Images) > 0 || p.HostProcess != nil
}

// Needs is the least level at which all that the pattern asks for can be known.
func (p *Pattern) Needs() int {
	switch {
	case p.needsPod():
		return caller.LevelPod
	case p.Exe != "":
		return caller.LevelProcess
	}
	return caller.LevelSID
}

// differs names the first field in which the caller does not agree; empty if it agrees in all.
func (p *Pattern) differs(c *known) Field {
	switch {
	case c.level < p.Least || c.level == caller.LevelNone:
		return FieldAssurance
	case p.User != "" && p.User != c.user:
		return FieldUser
	case p.Exe != "" && !coversExe(p.Exe, c.exe):
		return FieldExe
	case p.Namespace != "" && p.Namespace != c.namespace:
		return FieldNamespace
	case len(p.Accounts) > 0 && !slices.Contains(p.Accounts, c.account):
		return FieldServiceAccount
	case len(p.Containers) > 0 && !slices.Contains(p.Containers, c.container):
		return FieldContainer
	case len(p.Images) > 0 && !p.coversImage(c.image):
		return FieldImage
	case p.OnNode && c.level >= caller.LevelPod && !c.hostProcess:
		return FieldContainer
	case p.HostProcess != nil && *p.HostProcess != c.hostProcess:
		return FieldHostProcess
	case p.Token && !c.token:
		return FieldToken
	}
	return ""
}

func (p *Pattern) coversImage(image string) bool {
	for _, pattern := range p.Images { // a closure would be made for each call
		if CoversImage(pattern, image) {
			return true
		}
	}
	return false
}

// keys are the fields that a List looks up: for each service account, if any is asked for.
func (p *Pattern) keys() []who {
	key := who{user: p.User, exe: p.Exe, namespace: p.Namespace}
	if isExeDir(p.Exe) {
		key.exe = ""
	}
	if len(p.Accounts) == 0 {
		return []who{key}
	}
	keys := make([]who, len(p.Accounts))
	for i, account := range p.Accounts {
		keys[i] = key
		keys[i].account = account
	}
	return keys
}

// Name is by what a pattern names a caller.
type Name struct{ User, Exe, Namespace, Account, Container string }

// Names are those by which the pattern names its callers, if it says enough for that: a namespace with the service account, or with
// the container where service accounts cannot be learnt; or an account of the node with one program.
func (p *Pattern) Names() (names []Name) {
	switch {
	case p.Namespace != "" && len(p.Accounts) > 0:
		for _, account := range p.Accounts {
			names = append(names, Name{Namespace: p.Namespace, Account: account})
		}
	case p.Namespace != "":
		for _, container := range p.Containers {
			names = append(names, Name{Namespace: p.Namespace, Container: container})
		}
	case p.User != "" && p.Exe != "" && !isExeDir(p.Exe) && !p.needsPod():
		names = []Name{{User: p.User, Exe: p.Exe}}
	}
	return names
}

// isName says whether Names has any, without making them.
func (p *Pattern) isName() bool {
	if p.Namespace != "" {
		return len(p.Accounts)+len(p.Containers) > 0
	}
	return p.User != "" && p.Exe != "" && !isExeDir(p.Exe) && !p.needsPod()
}

// Includes says that the pattern covers every caller that o covers. It may say no where yes would be right.
func (p *Pattern) Includes(o *Pattern) bool {
	within := func(list, wanted []string, covers func(pattern, value string) bool) bool {
		return len(list) == 0 || len(wanted) > 0 && !slices.ContainsFunc(wanted, func(value string) bool {
			return !slices.ContainsFunc(list, func(pattern string) bool { return pattern == value || covers(pattern, value) })
		})
	}
	no := func(string, string) bool { return false }
	return p.Least <= o.Least && (p.User == "" || p.User == o.User) && (p.Exe == "" || o.Exe == p.Exe || coversExe(p.Exe, o.Exe)) &&
		(p.Namespace == "" || p.Namespace == o.Namespace) &&
		within(p.Accounts, o.Accounts, no) && within(p.Containers, o.Containers, no) && within(p.Images, o.Images, CoversImage) &&
		(p.HostProcess == nil || o.HostProcess != nil && *p.HostProcess == *o.HostProcess) && (!p.OnNode || o.OnNode) && (!p.Token || o.Token)
}
