package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// Steps of assurance in rising order; 0 is unknown and is covered by no pattern.
const (
	levelUser    = 1
	levelProcess = 2
	levelPod     = 3
)

func level(assurance string) int {
	switch assurance {
	case "sid":
		return levelUser
	case "process":
		return levelProcess
	case "pod":
		return levelPod
	}
	return 0
}

// names are the fields of a caller that are compared as they are, and the two that may be prefixes. In a pattern an empty
// one is not asked for, exe may be a directory with its separator and image a prefix; in a caller an empty one is unknown.
type callerNames struct{ user, exe, namespace, account, container, image string }

// callerPattern is a parsed CallerPattern.
type callerPattern struct {
	names       callerNames
	hostProcess *bool
	token       bool
	least       int
	isName      bool // it has a name
}

// caller is a Caller with its fields folded, and without those that its assurance does not carry.
type caller struct {
	names       callerNames
	hostProcess bool
	token       bool
	level       int
	mayBeInside bool // something is said of a pod or a container, whether or not the assurance carries it, or is in doubt
}

func foldCaller(c Caller) caller {
	out := caller{level: level(c.Assurance), token: c.Token}
	out.mayBeInside = c.Doubt || c.Namespace != "" || c.ServiceAccount != "" || c.Pod != "" || c.Container != "" || c.Image != "" || c.HostProcess
	if out.level == 0 {
		return out
	}
	out.names.user = foldUser(c.User)
	if out.level >= levelProcess {
		out.names.exe = string(foldExe(c.Exe))
	}
	if out.level < levelPod || !isLabel(c.Namespace) {
		return out
	}
	out.names.namespace, out.names.container, out.hostProcess = c.Namespace, c.Container, c.HostProcess
	out.names.account = c.ServiceAccount
	if access.IsImage(c.Image) {
		out.names.image = c.Image
	}
	return out
}

func parseCaller(c CallerPattern) (callerPattern, []error) {
	p := callerPattern{token: c.Token, least: levelUser}
	if c.HostProcess != nil {
		value := *c.HostProcess // not to follow the spec
		p.hostProcess = &value
	}
	var errs []error
	if c.User != "" {
		p.names.user = foldUser(c.User)
		errs = append(errs, checkUser(p.names.user))
	}
	if c.Exe != "" {
		exe, err := parseExe(c.Exe)
		p.names.exe = exe
		errs = append(errs, err)
		p.least = levelProcess
	}
	errs = append(errs, p.parsePod(c)...)
	_, p.isName = p.name()
	if c.User == "" && c.Exe == "" && p.names.namespace == "" && errors.Join(errs...) == nil {
		return p, []error{errors.New("names neither a user, an exe nor a namespace: it would stand for everybody")}
	}
	return p, slices.DeleteFunc(append(errs, p.parseAssurance(c.Assurance)), func(err error) bool { return err == nil })
}

// parsePod takes the fields that only a proven pod has.
func (p *callerPattern) parsePod(c CallerPattern) []error {
	var errs []error
	p.names.namespace, p.names.account, p.names.container, p.names.image = c.Namespace, c.ServiceAccount, c.Container, c.Image
	if namespace, name, ok := strings.Cut(c.ServiceAccount, "/"); ok {
		if c.Namespace != "" && c.Namespace != namespace {
			errs = append(errs, fmt.Errorf("service account %q is not of namespace %q", c.ServiceAccount, c.Namespace))
		}
		p.names.namespace, p.names.account = namespace, name
		if namespace == "" || name == "" {
			errs = append(errs, fmt.Errorf("service account %q: want NAMESPACE/NAME", c.ServiceAccount))
		}
	} else if c.ServiceAccount != "" && c.Namespace == "" {
		errs = append(errs, fmt.Errorf("service account %q needs its namespace, beside it or as NAMESPACE/NAME", c.ServiceAccount))
	}
	if n := p.names.namespace; n != "" && !isLabel(n) {
		errs = append(errs, fmt.Errorf("namespace %q: want the name of one namespace", n))
	}
	if n := p.names.account; n != "" && !isSubdomain(n) {
		errs = append(errs, fmt.Errorf("service account %q: want the name of one service account", n))
	}
	if n := p.names.container; n != "" && !isLabel(n) {
		errs = append(errs, fmt.Errorf("container %q: want the name of one container", n))
	}
	if c.Image != "" {
		var err error
		p.names.image, err = access.ParseImage(c.Image)
		errs = append(errs, err)
	}
	if p.needsPod() {
		p.least = levelPod
	}
	return errs
}

func (p *callerPattern) needsPod() bool {
	n := p.names
	return n.namespace != "" || n.account != "" || n.container != "" || n.image != "" || p.hostProcess != nil
}

func (p *callerPattern) parseAssurance(text string) error {
	if text == "" {
		return nil
	}
	n := level(text)
	switch {
	case n == 0:
		return fmt.Errorf("assurance %q: want sid, process or pod", text)
	case n < p.least && p.needsPod():
		return fmt.Errorf("assurance %q: pods and containers are known only at assurance pod", text)
	case n < p.least:
		return fmt.Errorf("assurance %q: an exe is known only from assurance process upwards", text)
	}
	p.least = n
	return nil
}

// covers is the whole comparison, one field after the other.
func (p *callerPattern) covers(c *caller) bool { return p.differs(c) == "" }

// differs names the first field in which the caller does not agree; empty if it agrees in all. c.level must not be 0.
func (p *callerPattern) differs(c *caller) string {
	want, have := &p.names, &c.names
	switch {
	case c.level < p.least || c.level == 0:
		return "assurance"
	case want.user != "" && want.user != have.user:
		return "user"
	case want.exe != "" && !coversExe(want.exe, have.exe):
		return "exe"
	case want.namespace != "" && want.namespace != have.namespace:
		return "namespace"
	case want.account != "" && want.account != have.account:
		return "serviceAccount"
	case want.container != "" && want.container != have.container:
		return "container"
	case want.image != "" && !access.CoversImage(want.image, have.image):
		return "image"
	case p.hostProcess != nil && *p.hostProcess != c.hostProcess:
		return "hostProcess"
	case p.token && !c.token:
		return "token"
	}
	return ""
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
