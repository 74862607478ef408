package admission

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// Action is the consequence for an object without permission.
type Action string

// ActionIgnore lets it pass without a record. It is an action of parameters, and of no PipePolicy.
const ActionIgnore Action = "Ignore"

// hostActions are those of the parameters about what reaches the host beside the pipes.
var hostActions = []Action{ActionIgnore, ActionAudit, ActionWarn, ActionDeny}

// pipeActions are those on guarded pipes, of parameters and of PipePolicies.
var pipeActions = []Action{ActionDeny, ActionWarn, ActionAudit}

// Actions, from the strictest to the most lenient. Of several policies that govern a pipe the strictest counts.
const (
	ActionDeny  Action = "Deny"
	ActionWarn  Action = "Warn"
	ActionAudit Action = "Audit"
)

// Admits reports of an action on guarded pipes whether an object without permission passes.
func (a Action) Admits() bool { return a == ActionWarn || a == ActionAudit }

// PipePolicy guards pipes and says who may mount them, and which of its subjects may be HostProcess containers or mount guarded host paths. It governs each of its pipes: the allowed
// namespaces of the parameters no longer count for a pipe that any PipePolicy names.
type PipePolicy struct {
	// Pipes are names of pipes, or prefixes that end in "*", in any case.
	Pipes []string
	// Action is the consequence for an object without permission; empty means ActionDeny.
	Action Action
	// Requirement is what a container must have; empty means AllowedNamespace. "Allowed namespace" means to be a subject.
	Requirement Requirement
	// Subjects may mount the pipes; without any, no pod may. Admission ignores their permissions on nodes, and subjects that are processes of a node.
	Subjects []access.Subject
	// LogOnly is for nodes alone, as in access.Policy.
	LogOnly bool `json:",omitempty"`
	// Warnings tell the author of a policy of the parameters, which has no status, of what may not be meant.
	Warnings []string `json:"-"`
}

// Bounds of a PipePolicy, the same as those of the API's schema: what the API server stores and what a parameters
// file may hold must not differ.
const (
	maxSet           = 64 // of pipes, and of each list of a subject
	maxSubjects      = 256
	maxPattern       = 253
	maxLabel         = 63
	maxSubdomain     = 253
	maxImage         = 512
	maxReason        = 1024
	maxSID           = 184
	maxRunAsUserName = 256
	maxHostPath      = 1024
	maxProgram       = 1024
	latestExpiry     = 9999 // years of more digits do not sort as texts
	expiryLayout     = "2006-01-02T15:04:05Z"

	// ExpiryWarning is how long before its end a permission counts as ending.
	ExpiryWarning = 7 * 24 * time.Hour
)

var (
	imageText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/:@-]*$`)
	imageEnd  = regexp.MustCompile(`^[^@]*[A-Za-z0-9](@sha256:[0-9a-f]{64})?$`)
	// repositorySegment is a path-component of https://pkg.go.dev/github.com/distribution/reference.
	repositorySegment = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*$`)
	// registryName and tagName are its domain-and-port and its tag.
	registryName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*(:[0-9]+)?$`)
	tagName      = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

	// runAsUserName is a domain, if any, and an account or group of Windows, as the API server takes it.
	runAsUserName = regexp.MustCompile(`^([^\x00-\x1f\x7f"/\\:|<>+=;?*\[\],@]+\\)?[^\x00-\x1f\x7f"/\\:|<>+=;?*\[\],@]+$`)
)

// Validate reports every fault of p at once.
func (p PipePolicy) Validate() error {
	var f faults
	p.check(&f, "")
	return errors.Join(f...)
}

// withDefaults gives the fields that may be left out their defaults, which are those of the API's schema.
func (p PipePolicy) withDefaults() PipePolicy {
	p.Action = cmp.Or(p.Action, ActionDeny)
	p.Requirement = cmp.Or(p.Requirement, AllowedNamespace)
	return p
}

// forAdmission has defaults, and nothing of what is for nodes alone: the revision must not change with that.
func (p PipePolicy) forAdmission() PipePolicy {
	p = p.withDefaults()
	subjects := make([]access.Subject, 0, len(p.Subjects))
	for _, s := range p.Subjects {
		if !s.IsProcess() {
			s.Permission = access.Permission{}
			subjects = append(subjects, s)
		}
	}
	p.LogOnly, p.Subjects = false, subjects
	return p
}

// lenient reports whether an object without permission passes.
func (p PipePolicy) lenient() bool { return p.Action.Admits() }

func (p PipePolicy) check(f *faults, at string) {
	p = p.withDefaults()
	pipes := join(at, "pipes")
	if len(p.Pipes) == 0 && !slices.ContainsFunc(p.Subjects, func(s access.Subject) bool { return s.ReachesHost() }) {
		f.add(pipes, "at least one pipe is needed, or a subject with hostProcess or hostPaths: the policy guards nothing")
	}
	f.entries(pipes, p.Pipes, maxPattern)
	for i, pattern := range p.Pipes {
		if pattern == "*" {
			f.add(element(pipes, i), "* is neither the name of a pipe nor a beginning followed by *")
		} else if _, err := pipepath.NewGuard(pattern); err != nil {
			f.add(element(pipes, i), "%v", err)
		}
	}
	choice(f, join(at, "admission.action"), string(p.Action), pipeActions...)
	choice(f, join(at, "admission.requirement"), string(p.Requirement), AllowedNamespace, PrivilegedAndAllowedNamespace, PrivilegedOrAllowedNamespace)
	if len(p.Subjects) > maxSubjects {
		f.add(join(at, "subjects"), "%d entries, and at most %d are taken", len(p.Subjects), maxSubjects)
		return
	}
	seen := map[string]bool{}
	for i, s := range p.Subjects {
		here := element(join(at, "subjects"), i)
		checkSubject(f, here, &s)
		if seen[s.Name] {
			f.add(join(here, "name"), "%s is the name of another subject as well", quote(s.Name, maxName))
		}
		seen[s.Name] = true
	}
}

func checkSubject(f *faults, at string, s *access.Subject) {
	f.label(join(at, "name"), s.Name)
	if err := s.CheckProcess(); err != nil {
		f.add(at, "%v", err)
	}
	if !s.IsProcess() {
		f.label(join(at, "namespace"), s.Namespace)
	}
	f.length(join(at, "process.account"), s.Account, maxSID)
	f.length(join(at, "process.program"), s.Program, maxProgram)
	f.entries(join(at, "serviceAccounts"), s.ServiceAccounts, maxSubdomain)
	f.names(join(at, "serviceAccounts"), "service account", s.ServiceAccounts, caller.IsSubdomain)
	f.entries(join(at, "containers"), s.Containers, maxLabel)
	f.names(join(at, "containers"), "container", s.Containers, caller.IsLabel)
	if s.ReachesHost() && len(s.ServiceAccounts) == 0 {
		f.add(join(at, "serviceAccounts"), "a subject with hostProcess or hostPaths must name its service accounts: otherwise anyone who can create pods in the namespace controls the nodes")
	}
	if s.HostProcess != nil {
		checkHostProcess(f, at, s)
	}
	checkHostPaths(f, join(at, "hostPaths"), s.HostPaths)
	f.entries(join(at, "images"), s.Images, maxImage)
	for i, image := range s.Images {
		prefix, isPrefix := strings.CutSuffix(image, "*")
		switch {
		case image == "": // entries reports it
		case strings.Contains(prefix, "*"), isPrefix && !strings.Contains(prefix, "/"):
			f.add(element(join(at, "images"), i), `%s: a * stands at the end, with a "/" before it, or nowhere`, quote(image, maxName))
		case hasUpperCase(prefix):
			f.add(element(join(at, "images"), i), `%s matches no image: no runtime takes a name in capital letters; only its registry and its tag may have them`, quote(image, maxName))
		case !imageText.MatchString(prefix), strings.Contains(prefix, "//"), !isImageName(prefix, isPrefix), !isPrefix && !imageEnd.MatchString(image):
			f.add(element(join(at, "images"), i), `%s matches no image: want a name as pods have it, such as registry.example/driver:v1, or its beginning and *`, quote(image, maxName))
		default:
			if _, err := access.SpellImage(image); err != nil {
				f.add(element(join(at, "images"), i), "%v", err)
			}
		}
	}
	f.length(join(at, "owner"), s.Owner, maxSubdomain)
	f.length(join(at, "reason"), s.Reason, maxReason)
	if s.ExpiresAt.IsZero() {
		return
	}
	if s.Owner == "" || s.Reason == "" {
		f.add(at, "a subject that expires is an exception: name its owner and reason")
	}
	if year := s.ExpiresAt.UTC().Year(); year < 1 || year > latestExpiry {
		f.add(join(at, "expiresAt"), "the year %d is not between 1 and %d", year, latestExpiry)
	}
}

// checkHostPaths takes paths in ASCII alone: of others the file system of a node decides what is a capital letter.
func checkHostPaths(f *faults, at string, paths []string) {
	if paths != nil && len(paths) == 0 {
		f.add(at, "is empty: leave it out to permit none")
	}
	f.entries(at, paths, maxHostPath)
	for i, path := range paths {
		if path == "" { // entries reports it
			continue
		}
		_, err := pipepath.ParseDirectory(path)
		if _, isCertain := pipepath.MountedDirectory(path, ""); err != nil || !isCertain {
			f.add(element(at, i), `%s: want a directory with its drive in plain ASCII, such as C:\var\lib\kubelet\plugins; it stands for all in it, and a pattern matches none`, quote(path, maxName))
		}
	}
}

func checkHostProcess(f *faults, at string, s *access.Subject) {
	names := join(at, "hostProcess.runAsUserNames")
	if list := s.HostProcess.RunAsUserNames; list != nil && len(list) == 0 {
		f.add(names, "is empty: leave it out to permit any account")
	}
	f.entries(names, s.HostProcess.RunAsUserNames, maxRunAsUserName)
	for i, name := range s.HostProcess.RunAsUserNames {
		if name != "" && (!runAsUserName.MatchString(name) || strings.Trim(name, " .") == "") {
			f.add(element(names, i), `%s: want an account as in runAsUserName, such as NT AUTHORITY\SYSTEM; names are exact, and a pattern matches none`, quote(name, maxName))
		}
	}
}

// cutImage takes an image's name apart, as container runtimes do (https://github.com/distribution/reference). The first of
// several segments is a registry if no repository can be called so.
func cutImage(image string) (registry, repository, tag string, tagged bool) {
	image, _, digest := strings.Cut(image, "@")
	if first, rest, ok := strings.Cut(image, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost" || first != strings.ToLower(first)) {
		registry, image = first, rest
	}
	repository, tag, tagged = strings.Cut(image, ":")
	return registry, repository, tag, tagged || digest
}

func hasUpperCase(image string) bool {
	_, repository, _, _ := cutImage(image)
	return repository != strings.ToLower(repository)
}

// isImageName checks the parts of an image's name against the forms that runtimes take. The last part of a prefix may be incomplete.
func isImageName(image string, isPrefix bool) bool {
	registry, repository, tag, tagged := cutImage(image)
	if isPrefix && !tagged {
		repository += "x"
	}
	for segment := range strings.SplitSeq(repository, "/") {
		if !repositorySegment.MatchString(segment) {
			return false
		}
	}
	return (registry == "" || registryName.MatchString(registry)) && (tag == "" || tagName.MatchString(tag))
}

// expiry is when the permission ends and when its end is near, as policies compare them; empty for one that does not end.
// Parts of a second are cut off, so that the end is never late.
func expiry(s *access.Subject) (at, warnFrom string) {
	if s.ExpiresAt.IsZero() {
		return "", ""
	}
	return instant(s.ExpiresAt), instant(s.ExpiresAt.Add(-ExpiryWarning))
}

// label checks a text against the form of names in the API's schema.
func (f *faults) label(at, s string) {
	switch {
	case caller.IsLabel(s):
	case strings.ContainsAny(s, "*?[]"):
		f.add(at, "%s: want lower-case letters, digits and -, at most %d; names are exact, and a pattern matches none", quote(s, maxName), maxLabel)
	default:
		f.add(at, "%s: want lower-case letters, digits and -, at most %d", quote(s, maxName), maxLabel)
	}
}

// names checks the entries of a list of names. Names are exact: a pattern would be accepted, and
// match nothing.
func (f *faults) names(at, of string, list []string, is func(string) bool) {
	for i, s := range list {
		switch {
		case s == "" || is(s): // entries reports it
		case strings.ContainsAny(s, "*?[]"):
			f.add(element(at, i), "%s matches no %s: names are exact; leave the list out to permit any, or list the names", quote(s, maxName), of)
		default:
			f.add(element(at, i), "%s is not the name of a %s", quote(s, maxName), of)
		}
	}
}

func (f *faults) length(at, s string, most int) {
	if n := len([]rune(s)); n > most {
		f.add(at, "%d characters, and at most %d are taken", n, most)
	}
}

// entries checks a list of texts against the bounds of a set.
func (f *faults) entries(at string, list []string, longest int) {
	if len(list) > maxSet {
		f.add(at, "%d entries, and at most %d are taken", len(list), maxSet)
		return
	}
	for i, s := range list {
		if s == "" {
			f.add(element(at, i), "it is empty")
		}
		f.length(element(at, i), s, longest)
		if slices.Contains(list[:i], s) {
			f.add(element(at, i), "%s is in the list already", quote(s, maxName))
		}
	}
}

func element(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
