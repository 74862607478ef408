package policyset

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/audit/inert"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/version"
)

// CheckPipePolicy reports every fault of a PipePolicy. The CRD's schema checks the
// same at the API server; objects in files, or stored under another schema, have not met it.
func CheckPipePolicy(p *v1alpha1.PipePolicy) field.ErrorList {
	var faults field.ErrorList
	spec := field.NewPath("spec")
	faults = append(faults, append(checkName(p.Name), checkUnknown(p.Unknown)...)...)
	if err := pipePolicy(p).Validate(); err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			faults = append(faults, field.Invalid(spec, field.OmitValueType{}, line))
		}
	}
	switch p.Spec.Node.Action {
	case "", v1alpha1.NodeEnforce, v1alpha1.NodeLogOnly:
	default:
		faults = append(faults, field.NotSupported(spec.Child("node", "action"), p.Spec.Node.Action,
			[]v1alpha1.NodeAction{v1alpha1.NodeEnforce, v1alpha1.NodeLogOnly}))
	}
	faults = append(faults, checkCalls(p.Spec.Node.Methods, p.Spec.Node.PathPrefixes, spec.Child("node"))...)
	if p.Name == "parameters" { // its rules on nodes would be called as those policies are
		faults = append(faults, field.Invalid(field.NewPath("metadata", "name"), p.Name, "is for the policies of the parameters, which are called parameters/NAME: give it another"))
	}
	for i := range p.Spec.Subjects {
		s := &p.Spec.Subjects[i]
		faults = append(faults, checkSubjectRules(&s.Node, spec.Child("subjects").Index(i).Child("node"))...)
		faults = append(faults, checkProcess(s.Process, spec.Child("subjects").Index(i).Child("process"))...)
		if s.HostProcess != nil {
			for j, name := range s.HostProcess.RunAsUserNames {
				if message := invisible(name); message != "" {
					faults = append(faults, field.Invalid(spec.Child("subjects").Index(i).Child("hostProcess", "runAsUserNames").Index(j), name, message))
				}
			}
		}
		if s.ExpiresAt != nil && s.ExpiresAt.IsZero() { // elsewhere a time that is not set means that there is no end
			at := spec.Child("subjects").Index(i).Child("expiresAt")
			faults = append(faults, field.Invalid(at, s.ExpiresAt.Format(time.RFC3339), "not the end of a permission; leave it out if there is none"))
		}
	}
	return faults
}

// checkUnknown refuses an object with fields that this release does not have. It was stored under the CRDs of another one, whose webhook gives
// them a meaning: a subject without a condition that narrows it would be a wider one.
func checkUnknown(fields string) field.ErrorList {
	if fields == "" {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), fmt.Sprintf("release %s does not know %s: upgrade the webhook to the release that the object was written for, or remove what is not known",
		version.Number(), inert.Line(fields)))}
}

// checkProcess finds a process without any field, which would otherwise count as absent, and invisible characters in its program.
func checkProcess(p *v1alpha1.NodeProcess, at *field.Path) (faults field.ErrorList) {
	if p == nil {
		return nil
	}
	if *p == (v1alpha1.NodeProcess{}) {
		faults = append(faults, field.Required(at, "account and program"))
	}
	if message := invisible(p.Program); message != "" {
		faults = append(faults, field.Invalid(at.Child("program"), p.Program, message))
	}
	return faults
}

// Bounds of the metadata of a policy object. None of it decides anything, and each replica reads all of it with each list.
const (
	maxEntries = 256
	maxExtra   = 64 << 10  // bytes of labels, finalizers and owners as JSON, each
	maxManaged = 512 << 10 // bytes of managedFields as JSON
)

// CheckMetadata returns an error for each part of an object's metadata that is too large. The API server itself bounds annotations, to 256 KiB. It is for objects that
// are about to be stored: one that is stored already must not stop the others.
func CheckMetadata(m *metav1.ObjectMeta) (faults field.ErrorList) {
	at := field.NewPath("metadata")
	for _, list := range []struct {
		name string
		n    int
	}{
		{"labels", len(m.Labels)},
		{"annotations", len(m.Annotations)},
		{"finalizers", len(m.Finalizers)},
		{"ownerReferences", len(m.OwnerReferences)},
		{"managedFields", len(m.ManagedFields)},
	} {
		if list.n > maxEntries {
			faults = append(faults, field.TooMany(at.Child(list.name), list.n, maxEntries))
		}
	}
	if len(faults) > 0 {
		return faults
	}
	for _, part := range []struct {
		name string
		of   metav1.ObjectMeta
		most int
	}{
		{"labels", metav1.ObjectMeta{Labels: m.Labels}, maxExtra},
		{"finalizers", metav1.ObjectMeta{Finalizers: m.Finalizers}, maxExtra},
		{"ownerReferences", metav1.ObjectMeta{OwnerReferences: m.OwnerReferences}, maxExtra},
		{"managedFields", metav1.ObjectMeta{ManagedFields: m.ManagedFields}, maxManaged},
	} {
		if text, err := json.Marshal(part.of); err != nil || len(text) > part.most {
			faults = append(faults, field.TooLong(at.Child(part.name), "", part.most))
		}
	}
	return faults
}

// checkName checks the name of an object as the API server does.
func checkName(name string) (faults field.ErrorList) {
	at := field.NewPath("metadata", "name")
	if name == "" {
		return field.ErrorList{field.Required(at, "a policy is named")}
	}
	for _, message := range validation.IsDNS1123Subdomain(name) {
		faults = append(faults, field.Invalid(at, name, message))
	}
	return faults
}

// Bounds of the lists of a policy's node rules, as in the CRD.
const (
	maxMethods, maxMethod  = 128, 128
	maxPrefixes, maxPrefix = 32, 1024
	maxPermits, maxPermit  = 3, 32
	maxNames               = 64 // shares or services
	maxShare, maxService   = 512, 256
)

// checkSet checks a list as the API server does: its bounds, and no entry twice.
func checkSet(list []string, most, longest int, at *field.Path) (faults field.ErrorList) {
	if len(list) > most {
		return field.ErrorList{field.TooMany(at, len(list), most)}
	}
	for i, s := range list {
		if utf8.RuneCountInString(s) > longest {
			faults = append(faults, field.TooLong(at.Index(i), "", longest))
		}
		if slices.Contains(list[:i], s) {
			faults = append(faults, field.Duplicate(at.Index(i), s))
		}
	}
	return faults
}

// checkSubjectRules finds what no node would take, or would permit nothing on any.
func checkSubjectRules(n *v1alpha1.SubjectRules, at *field.Path) (faults field.ErrorList) {
	faults = checkCalls(n.Methods, n.PathPrefixes, at)
	p := permission(v1alpha1.NodeRules{}, *n)
	for _, l := range []struct {
		name          string
		isSet         bool
		texts         []string
		most, longest int
	}{
		{"permits", n.Permits != nil, p.Permits, maxPermits, maxPermit},
		{"shares", n.Shares != nil, n.Shares, maxNames, maxShare},
		{"services", n.Services != nil, n.Services, maxNames, maxService},
		{"methods", n.Methods != nil, n.Methods, 0, 0}, // the rest is checked already
		{"pathPrefixes", n.PathPrefixes != nil, n.PathPrefixes, 0, 0},
	} {
		here := at.Child(l.name)
		if l.isSet && len(l.texts) == 0 {
			faults = append(faults, field.Invalid(here, field.OmitValueType{}, "is empty: leave it out"))
		}
		if l.most == 0 {
			continue
		}
		faults = append(faults, checkSet(l.texts, l.most, l.longest, here)...)
		for i, text := range l.texts {
			if message := invisible(text); message != "" {
				faults = append(faults, field.Invalid(here.Index(i), text, message))
			}
		}
	}
	for _, l := range []struct {
		name string
		n    *int32
	}{{"connections", n.Limits.Connections}, {"callsPerSecond", n.Limits.CallsPerSecond}, {"burst", n.Limits.Burst}} {
		if l.n != nil && *l.n == 0 { // elsewhere a 0 sets no bound
			faults = append(faults, field.Invalid(at.Child("limits", l.name), 0, "want 1 or more; leave it out to set no bound here"))
		}
	}
	p.Check(func(name, format string, args ...any) {
		faults = append(faults, field.Invalid(at.Child(name), field.OmitValueType{}, fmt.Sprintf(format, args...)))
	})
	return faults
}

// checkCalls finds methods and directories that would permit nothing on any node.
func checkCalls(methods, prefixes []string, at *field.Path) (faults field.ErrorList) {
	faults = append(checkSet(methods, maxMethods, maxMethod, at.Child("methods")), checkSet(prefixes, maxPrefixes, maxPrefix, at.Child("pathPrefixes"))...)
	known := access.Methods()
	for i, m := range methods {
		if slices.Contains(known, m) {
			continue
		}
		message := "not a method of the node API"
		if m == "*" {
			message += ": leave the list out to permit all"
		} else {
			message += hint("", policy.Nearest(m, known))
		}
		faults = append(faults, field.Invalid(at.Child("methods").Index(i), m, message))
	}
	for i, path := range prefixes {
		if message := invisible(path); message != "" {
			faults = append(faults, field.Invalid(at.Child("pathPrefixes").Index(i), path, message))
			continue
		}
		if _, err := safepath.NewRoots(path); err != nil { // as access lists do
			faults = append(faults, field.Invalid(at.Child("pathPrefixes").Index(i), path, fmt.Sprintf(`no request can be below it: %v; want a directory such as C:\var\lib\kubelet`, err)))
		}
	}
	return faults
}

// invisible describes a character that a reader of the policy does not see, if a text has one.
func invisible(s string) string {
	if !utf8.ValidString(s) {
		return "is not UTF-8"
	}
	if i := strings.IndexFunc(s, func(r rune) bool { return !inert.IsInert(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(s[i:])
		return fmt.Sprintf("%U does not show, or changes how its neighbours do: no request would name what is read here", r)
	}
	return ""
}

// Warnings lists what the author of a valid PipePolicy may not have meant.
func Warnings(p *v1alpha1.PipePolicy, now time.Time) []string {
	out := append(pipeWarnings(p.Spec), ForAdmissionAlone(p)...)
	warn := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(p.Spec.Subjects) == 0 {
		warn("no subjects: nobody may use these pipes")
	}
	isHost := func(s v1alpha1.Subject) bool { return s.HostProcess != nil || len(s.HostPaths) > 0 }
	if a := p.Spec.Admission; slices.ContainsFunc(p.Spec.Subjects, isHost) {
		if a.Requirement != "" && a.Requirement != v1alpha1.RequireSubject {
			warn("admission.requirement is for pipes: no HostProcess container, and no mount of a host path, is asked whether it is privileged")
		}
		if len(p.Spec.Pipes) == 0 && a.Action != "" && a.Action != v1alpha1.ActionDeny {
			warn("admission.action is for pipes, and there are none: the parameters hostProcess and hostPaths set the action for others")
		}
	}
	for _, s := range p.Spec.Subjects {
		if len(p.Spec.Pipes) == 0 && !isHost(s) {
			warn("subject %s is permitted nothing: the policy has no pipes, and the subject no hostProcess or hostPaths", s.Name)
		}
		if s.ExpiresAt != nil {
			switch left := s.ExpiresAt.Sub(now); {
			case left <= 0:
				warn("subject %s expired: it permits nothing", s.Name)
			case left < admission.ExpiryWarning:
				warn("subject %s expires in %s", s.Name, left.Round(time.Minute))
			}
		}
		for _, image := range s.Images {
			switch name, ok := access.EndsWithinName(image); {
			case !ok:
			case strings.LastIndexByte(name, ':') > strings.LastIndexByte(name, '/'):
				warn("subject %s: image %s is the tag or digest %s alone, and none that begins so: write %s.* or %s-*", s.Name, image, name, name, name)
			default:
				warn("subject %s: image %s is %s with any tag or digest, and what lies below it, and no other name that begins so: write %s:* or %s/*", s.Name, image, name, name, name)
			}
		}
		if s.HostProcess != nil && len(s.HostProcess.RunAsUserNames) == 0 {
			warn("subject %s permits HostProcess containers under any Windows account: name those of the driver in hostProcess.runAsUserNames", s.Name)
		}
		if s.HostProcess != nil && len(s.Images) == 0 {
			warn("subject %s permits HostProcess containers of any image: every image that its service accounts can run has the nodes", s.Name)
		}
		for _, path := range s.HostPaths {
			if root := strings.TrimRight(path, `\/`); len(root) == len("C:") {
				warn("subject %s: host path %s is the whole drive: its containers reach everything on it", s.Name, path)
			}
		}
		if len(s.HostPaths) > 0 && len(s.Images) == 0 {
			warn("subject %s permits host paths to any image: name those of the driver", s.Name)
		}
		if len(s.ServiceAccounts) == 0 && s.Process == nil {
			warn("subject %s names no service account: any in namespace %s may use the pipes", s.Name, s.Namespace)
		}
	}
	return out
}

// ForAdmissionAlone is what of a PipePolicy no node can express, in sentences: see package nodepolicy.
func ForAdmissionAlone(p *v1alpha1.PipePolicy) []string {
	of := sorted(accessPolicy(p))
	return nodepolicy.ForAdmissionAlone(&of)
}

// pipeWarnings warn of pipes that CSI Proxy does not have. They are no faults: later versions may have more.
func pipeWarnings(spec v1alpha1.PipePolicySpec) (out []string) {
	groups := access.Groups()
	for _, pattern := range spec.Pipes {
		folded := pipepath.Fold(string(pattern))
		name, ours := strings.CutPrefix(folded, access.PipePrefix)
		switch {
		case access.GuardsCSIProxy(folded):
		case ours:
			out = append(out, fmt.Sprintf("CSI Proxy has no pipe %s%s", pattern, hint(access.PipePrefix, nearestPipe(name, groups))))
		case access.GuardsCSIProxy(access.PipePrefix + folded):
			out = append(out, fmt.Sprintf("pipe %s is none of CSI Proxy%s", pattern, hint(access.PipePrefix, folded)))
		}
	}
	return out
}

// nearestPipe is the pipe that a name behind the prefix may mean, or where that ends in "*" the pipes of a group.
func nearestPipe(name string, groups []access.Group) string {
	var names []string
	for _, g := range groups {
		if strings.HasSuffix(name, "*") {
			names = append(names, g.Name+"-*")
			continue
		}
		for _, pipe := range g.Pipes() {
			names = append(names, strings.TrimPrefix(pipe.Name(), access.PipePrefix))
		}
	}
	return policy.Nearest(name, names)
}

func hint(prefix, near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf(": did you mean %q?", prefix+near)
}

// regoFile is the form of a file's name, as in the CRD.
var regoFile = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*\.rego$`)

// CheckPolicyModule finds what is wrong with a PolicyModule before its Rego is looked at.
func CheckPolicyModule(m *v1alpha1.PolicyModule) field.ErrorList {
	var faults field.ErrorList
	modules := field.NewPath("spec", "modules")
	faults = append(faults, append(checkName(m.Name), checkUnknown(m.Unknown)...)...)
	if len(m.Spec.Modules) == 0 {
		faults = append(faults, field.Required(modules, "at least one file"))
	}
	if !slices.ContainsFunc(m.Spec.Modules, func(f v1alpha1.RegoFile) bool { return strings.HasSuffix(f.Name, "_test.rego") }) {
		faults = append(faults, field.Required(modules, "at least one file of tests, whose name ends in _test.rego: Rego that nothing tests does not decide"))
	}
	seen := map[string]bool{}
	for i, f := range m.Spec.Modules {
		at := modules.Index(i).Child("name")
		switch {
		case !regoFile.MatchString(f.Name):
			faults = append(faults, field.Invalid(at, f.Name, "want letters, digits, - and _, and .rego at the end"))
		case seen[f.Name]:
			faults = append(faults, field.Duplicate(at, f.Name))
		}
		seen[f.Name] = true
	}
	return faults
}
