package acl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// callerPattern is a parsed CallerPattern, or the subject of a rule. What is empty is not asked for; of a list the caller has one.
type callerPattern struct {
	user, exe, namespace         string // exe may be a directory with its separator
	accounts, containers, images []string
	hostProcess                  *bool
	token                        bool
	least                        int
	isName                       bool // it has a name
}

// keys are the fields that the index looks up: for each service account, if any is asked for.
func (p *callerPattern) keys() []who {
	key := who{user: p.user, exe: p.exe, namespace: p.namespace}
	if isExeDir(p.exe) {
		key.exe = ""
	}
	if len(p.accounts) == 0 {
		return []who{key}
	}
	keys := make([]who, len(p.accounts))
	for i, account := range p.accounts {
		keys[i] = key
		keys[i].account = account
	}
	return keys
}

// folded is a Caller with its fields folded, and without those that its assurance does not carry. An empty one is unknown.
type folded struct {
	who
	container, image string
	hostProcess      bool
	token            bool
	level            int
	mayBeInside      bool // something is said of a pod or a container, whether or not the assurance carries it, or is in doubt
}

func foldCaller(c *caller.Caller) folded {
	out := folded{level: c.Assurance.Level(), token: c.Token}
	out.mayBeInside = c.Doubt != "" || c.HasPod()
	if out.level == 0 {
		return out
	}
	out.user = foldUser(c.User.SID)
	if out.level >= caller.LevelProcess {
		out.exe = string(foldExe(c.Process.Exe))
	}
	if out.level < caller.LevelPod || !isLabel(c.Pod.Namespace) {
		return out
	}
	out.namespace, out.container, out.hostProcess = c.Pod.Namespace, c.Container.Name, c.Container.HostProcess
	out.account = c.Pod.ServiceAccount
	if access.IsImage(c.Container.Image) {
		out.image = c.Container.Image
	}
	return out
}

func parseCaller(c CallerPattern) (callerPattern, []error) {
	p := callerPattern{token: c.Token, least: caller.LevelSID}
	if c.HostProcess != nil {
		value := *c.HostProcess // not to follow the spec
		p.hostProcess = &value
	}
	var errs []error
	if c.User != "" {
		p.user = foldUser(c.User)
		errs = append(errs, checkUser(p.user))
	}
	if c.Exe != "" {
		exe, err := parseExe(c.Exe)
		p.exe = exe
		errs = append(errs, err)
		p.least = caller.LevelProcess
	}
	errs = append(errs, p.parsePod(c)...)
	p.isName = len(p.names()) > 0
	if c.User == "" && c.Exe == "" && p.namespace == "" && errors.Join(errs...) == nil {
		return p, []error{errors.New("names neither a user, an exe nor a namespace: it would stand for everybody")}
	}
	return p, slices.DeleteFunc(append(errs, p.parseAssurance(c.Assurance)), func(err error) bool { return err == nil })
}

// parsePod takes the fields that only a proven pod has.
func (p *callerPattern) parsePod(c CallerPattern) []error {
	var errs []error
	account := c.ServiceAccount
	p.namespace = c.Namespace
	if namespace, name, ok := strings.Cut(c.ServiceAccount, "/"); ok {
		if c.Namespace != "" && c.Namespace != namespace {
			errs = append(errs, fmt.Errorf("service account %q is not of namespace %q", c.ServiceAccount, c.Namespace))
		}
		p.namespace, account = namespace, name
		if namespace == "" || name == "" {
			errs = append(errs, fmt.Errorf("service account %q: want NAMESPACE/NAME", c.ServiceAccount))
		}
	} else if c.ServiceAccount != "" && c.Namespace == "" {
		errs = append(errs, fmt.Errorf("service account %q needs its namespace, beside it or as NAMESPACE/NAME", c.ServiceAccount))
	}
	return append(errs, p.parseContainer(p.namespace, some(account), some(c.Container), some(c.Image), func(text string) ([]string, error) {
		pattern, err := access.ParseImage(text)
		return []string{pattern}, err
	})...)
}

// some is a list of what is not empty.
func some(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}

// parseContainer takes what is asked of a container, by the names that pods and images have.
func (p *callerPattern) parseContainer(namespace string, accounts, containers, images []string, spell func(image string) ([]string, error)) []error {
	var errs []error
	if namespace != "" && !isLabel(namespace) {
		errs = append(errs, fmt.Errorf("namespace %q: want the name of one namespace", namespace))
	}
	for _, n := range accounts {
		if !isSubdomain(n) {
			errs = append(errs, fmt.Errorf("service account %q: want the name of one service account", n))
		}
	}
	for _, n := range containers {
		if !isLabel(n) {
			errs = append(errs, fmt.Errorf("container %q: want the name of one container", n))
		}
	}
	for _, text := range images {
		patterns, err := spell(text)
		if err != nil {
			errs = append(errs, err)
		}
		p.images = append(p.images, patterns...)
	}
	p.namespace, p.accounts, p.containers = namespace, slices.Clone(accounts), slices.Clone(containers)
	if p.needsPod() {
		p.least = caller.LevelPod
	}
	return errs
}

// parseSubject is for a subject of a PipePolicy.
func parseSubject(s *access.Subject) (callerPattern, []error) {
	p := callerPattern{token: s.RequireToken, least: caller.LevelPod}
	errs := p.parseContainer(s.Namespace, s.ServiceAccounts, s.Containers, s.Images, access.SpellImage)
	p.isName = len(p.names()) > 0
	if s.Namespace == "" {
		errs = append(errs, errors.New("names no namespace: it would stand for everybody"))
	}
	return p, errs
}

func (p *callerPattern) needsPod() bool {
	return p.namespace != "" || len(p.accounts)+len(p.containers)+len(p.images) > 0 || p.hostProcess != nil
}

func (p *callerPattern) parseAssurance(text string) error {
	if text == "" {
		return nil
	}
	n := caller.Assurance(text).Level()
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
func (p *callerPattern) covers(c *folded) bool { return p.differs(c) == "" }

// differs names the first field in which the caller does not agree; empty if it agrees in all. c.level must not be 0.
func (p *callerPattern) differs(c *folded) string {
	switch {
	case c.level < p.least || c.level == 0:
		return "assurance"
	case p.user != "" && p.user != c.user:
		return "user"
	case p.exe != "" && !coversExe(p.exe, c.exe):
		return "exe"
	case p.namespace != "" && p.namespace != c.namespace:
		return "namespace"
	case len(p.accounts) > 0 && !slices.Contains(p.accounts, c.account):
		return "serviceAccount"
	case len(p.containers) > 0 && !slices.Contains(p.containers, c.container):
		return "container"
	case len(p.images) > 0 && !p.coversImage(c.image):
		return "image"
	case p.hostProcess != nil && *p.hostProcess != c.hostProcess:
		return "hostProcess"
	case p.token && !c.token:
		return "token"
	}
	return ""
}

func (p *callerPattern) coversImage(image string) bool {
	for _, pattern := range p.images { // a closure would be made for each call
		if access.CoversImage(pattern, image) {
			return true
		}
	}
	return false
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
