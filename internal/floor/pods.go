package floor

import (
	"fmt"
	"strings"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// variable is a variable of a policy. One that held an optional would be without it where it is missing, and admit everything: each ends in a value.
type variable struct{ name, expression string }

// podVariables are what the validations of pods are made of.
func (o *objects) podVariables() []variable {
	all := []variable{
		{"held", holder("object")},
		{"pod", "variables.held.?spec.orValue({})"},
		// The same update passes the webhook: it changes nothing that there could be a reason to refuse.
		{"unchanged", "request.operation == 'UPDATE' && request.?subResource.orValue('') == '' && " +
			bind("before", holder("oldObject"), "before.?spec.orValue({}) == variables.pod && "+
				bind("a", runtimeAnnotations("before"), bind("b", runtimeAnnotations("variables.held"), "a.all(x, x in b) && b.all(x, x in a)")))}, // the keys of a mapping have no order,
		// The mirror of a static pod, at the hands of its own node: the pod runs whether or not there is a mirror.
		{"mirror", "request.operation == 'CREATE' && request.?subResource.orValue('') == '' && dyn(object).kind == 'Pod' && 'kubernetes.io/config.mirror' in variables.held.?metadata.?annotations.orValue({}) && " +
			"variables.pod.?nodeName.orValue('') != '' && request.userInfo.?username.orValue('') == 'system:node:' + variables.pod.?nodeName.orValue('') && " +
			"'system:nodes' in request.userInfo.?groups.orValue([])"},
		{"passes", "variables.unchanged || variables.mirror"},
		{"fits", bind("held", "variables.held", bind("spec", "variables.pod", "!"+isTooLarge(o.characters)))},
		{"hostPaths", "variables.fits ? variables.pod.?volumes.orValue([]).filter(v, has(v.hostPath)).map(v, {'volume': dyn(v.?name.orValue('')), 'path': dyn(v.hostPath.?path.orValue(''))}) : []"},
		{"names", "variables.hostPaths.map(h, h.volume)"},
		{"roots", "variables.hostPaths.filter(h, " + isRoot("h.path") + ").map(h, h.volume)"},
		{"doors", "variables.hostPaths.filter(h, !" + isPlain("h.path") + " && !" + isRoot("h.path") + ")"},
		{"guarded", o.guardedVolumes()},
		{"few", fmt.Sprintf("variables.doors.size() <= %d && variables.guarded.size() <= %d", o.doors, mostDoors)},
		{"windows", "variables.pod.?securityContext.?windowsOptions.orValue({})"},
		{"containers", "variables.fits ? (variables.pod.?containers.orValue([]) + variables.pod.?initContainers.orValue([])).map(c, {'container': dyn(c), 'name': dyn(c.?name.orValue(''))}) + " +
			"variables.pod.?ephemeralContainers.orValue([]).map(c, {'container': dyn(c), 'name': dyn('')}) : []"}, // a subject that lists containers means none of these
		{"space", "request.?namespace.orValue('')"},
		{"account", "[variables.pod.?serviceAccountName.orValue(''), variables.pod.?serviceAccount.orValue(''), dyn('default')].filter(a, a != '')[0]"},
	}
	all = append(all, o.chunks...)
	return append(all,
		variable{"here", "(" + o.subjects + ").filter(s, (s.accounts == [] || variables.account in s.accounts) && (s.until == '' || request.operation == 'CREATE' && " +
			"timestamp(dyn(object).metadata.creationTimestamp) < timestamp(s.until)))"},
		variable{"namespaceAllowed", o.namespaces},
		variable{"named", "variables.few ? variables.doors.map(d, {'volume': dyn(d.volume), 'pipe': dyn(" + pipeName("d.path") + ")}) : []"},
		variable{"pipes", "variables.named.map(n, {'volume': dyn(n.volume), 'pipe': dyn(n.pipe), 'by': dyn(variables.policies.filter(p, n.pipe in p.exact || p.beginnings.exists(x, n.pipe.startsWith(x))))})"},
		variable{"concerned", "variables.few ? (variables.doors + variables.guarded).map(h, h.volume) : []"},
		variable{"permits", "variables.here.map(s, s.policy)"},
		variable{"asking", "variables.containers.filter(c, " + o.isAsker() + ").map(c, {'name': c.name, 'mounts': dyn(c.container.?volumeMounts.orValue([]).filter(m, m.name in variables.concerned)), " +
			"'privileged': dyn(c.container.?securityContext.?privileged.orValue(false)), 'images': dyn(" + imageKeys("c.container.?image.orValue('')") + "), " +
			"'hostProcess': dyn(" + hostProcess + "), 'runAs': dyn(c.container.?securityContext.?windowsOptions.?runAsUserName.orValue(variables.windows.?runAsUserName.orValue('')).lowerAscii())})"},
		// Subjects are looked at once for a container, and not for each of its mounts.
		variable{"compared", fmt.Sprintf("variables.asking.size() * variables.here.map(s, int(s.weight)).sum() <= %d", mostComparisons)},
		variable{"askers", "(variables.compared ? variables.asking : []).map(c, {'mounts': dyn(c.mounts), 'privileged': dyn(c.privileged), 'hostProcess': dyn(c.hostProcess), 'runAs': dyn(c.runAs), " +
			"'subjects': dyn(variables.here.filter(s, " + isContainer + "))})"},
	)
}

// hostProcess says whether the container "c" is a HostProcess container, of itself or of its pod.
const hostProcess = "c.container.?securityContext.?windowsOptions.?hostProcess.orValue(variables.windows.?hostProcess.orValue(false))"

// isAsker says that the container "c" is one whose permissions matter.
func (o *objects) isAsker() string {
	asks := "variables.concerned != [] && c.container.?volumeMounts.orValue([]).exists(m, m.name in variables.concerned)"
	if o.refusesHostProcess {
		asks += " || " + hostProcess
	}
	return asks
}

// printable is a text of ASCII without blanks.
const printable = `^[!-~]*$`

// runtimeAnnotations are the keys and values of the annotations that a runtime of Windows may obey, whatever case it ignores: of a key that is not ASCII, CEL cannot tell what it folds to.
func runtimeAnnotations(held string) string {
	return fmt.Sprintf("[%s.?metadata.?annotations.orValue({})].map(all, all.filter(k, !k.matches(%s) || k.lowerAscii().contains('microsoft.com')).map(k, k + '=' + all[k]))[0]", held, pattern(printable))
}

// guardedVolumes are the plain host paths that are a guarded directory, or may be.
func (o *objects) guardedVolumes() string {
	if o.directories.related == "" {
		return "variables.hostPaths.filter(none, false)"
	}
	return "variables.hostPaths.filter(h, (" + isPlain("h.path") + " || " + isRoot("h.path") + ") && !" + o.directories.areUnreachedBy("h.path") + ")"
}

// validation is a validation of a policy.
type validation struct{ expression, message string }

// podValidations are the rules of the webhook, by their codes.
func (o *objects) podValidations() []validation {
	rules := append(o.pipeRules(), compared) // else there are no askers, and every rule about them holds
	if o.directories.related != "" {
		rules = append(rules,
			validation{"variables.guarded.size() == 0 || variables.askers.all(c, c.mounts.all(m, variables.guarded.all(h, h.volume != m.name || c.subjects.exists(s, (" +
				"c.hostProcess && " + mayBeHostProcess + " || " + o.isWithin() + " && m.?subPathExpr.orValue('') == '' && (m.?subPath.orValue('') == '' || m.subPath.matches(" + pattern(certainSubPath) + "))))))) && " +
				"variables.guarded.all(h, variables.askers.exists(c, c.mounts.exists(m, m.name == h.volume)) || variables.here.exists(s, " + o.isWithin() + "))",
				"PG008, PG011: a hostPath is a guarded directory, is in one, contains one or is spelled so that it may be one, and no PipePolicy permits it"})
	}
	if o.refusesHostProcess {
		rules = append(rules,
			validation{"variables.askers.all(c, !c.hostProcess || c.subjects.exists(s, " + mayBeHostProcess + "))",
				"PG005: a container is a HostProcess container, and no PipePolicy permits it"},
			validation{"!variables.held.?metadata.?annotations.orValue({}).exists(k, !k.matches(" + pattern(printable) + ") || k.lowerAscii().startsWith('microsoft.com/hostprocess'))",
				"PG006: an annotation makes or widens a HostProcess container"})
	}
	for i := range rules {
		rules[i].expression = "variables.passes || (" + rules[i].expression + ")"
		rules[i].message = o.message(rules[i].message)
	}
	return rules
}

// compared is the rule about objects of which not every container is compared with every subject.
var compared = validation{"variables.compared", fmt.Sprintf("PG003: the containers that ask for a pipe, a guarded directory or to be HostProcess containers, times the subjects of PipePolicies that there are for their account, each as often as it names images, "+
	"are more than %d: the floor looks at no more, and counts the object as one that asks for a guarded pipe", mostComparisons)}

// tooLarge is the rule about objects of which not everything is looked at.
func (o *objects) tooLarge(fits string) validation {
	return validation{fits, fmt.Sprintf("PG003: the object has more than %d volumes, containers of a kind or annotations, %d mounts, %d host paths that would have to be permitted, or %d characters in all host paths: "+
		"the floor looks at no more, and counts it as one that asks for a guarded pipe", mostItems, mostMounts, o.doors, o.characters)}
}

// pipeRules are those about pipes, and about what may lead to any.
func (o *objects) pipeRules() []validation {
	if o.admitsLeads { // so does each PipePolicy, and no directory is refused
		return []validation{
			o.tooLarge("variables.fits"),
			{"variables.hostPaths.all(h, h.path != " + quote(admission.NeverAllowedPath) + ")", "PG003: a hostPath is the directory of all pipes"},
		}
	}
	return []validation{
		o.tooLarge("variables.fits && variables.few"),
		{"variables.named.all(n, n.pipe != '')", "PG003: a hostPath is not plain, and not \\\\.\\pipe\\NAME either, so that it may lead to any pipe. " +
			"Write it as an absolute path in ASCII, of at most 256 characters, without two dots in a row"},
		{"variables.hostPaths.size() == 0 || variables.containers.all(c, c.container.?volumeMounts.orValue([]).all(m, " + staysWithin + "))",
			"PG003: a subPath within a hostPath is not plain, so that it may lead to any pipe. Write it in ASCII, without two dots in a row"},
		{"variables.pipes.size() == 0 || variables.askers.all(c, c.mounts.all(m, variables.pipes.all(n, n.volume != m.name || m.?subPath.orValue('') == '' && m.?subPathExpr.orValue('') == '' && " + o.mayMount() + ")))",
			"PG001, PG010: a container mounts a guarded pipe without permission, or with a subPath"},
		{"variables.pipes.all(n, variables.askers.exists(c, c.mounts.exists(m, m.name == n.volume)) || " + o.mayDeclare() + ")",
			"PG002: a volume declares a guarded pipe that no container mounts, without permission"},
	}
}

// staysWithin says that the mount "m" stays within its volume if that is a host path.
var staysWithin = bind("sub", "m.?subPath.orValue('') + m.?subPathExpr.orValue('')", fmt.Sprintf(
	"sub == '' || [sub.size() <= %d && sub.matches(%s) && !sub.matches(%s)].exists(plain, plain && !(m.name in variables.roots) || !(m.name in variables.names) || "+
		"plain && m.?subPathExpr.orValue('') == '' && [('/' + sub)].exists(path, %s))",
	longestPath, pattern(plainSubPath), pattern(twoDots), isPlain("path")))

// mayMount says whether the container "c" may mount the pipe "n".
func (o *objects) mayMount() string {
	return "(n.by == [] ? " + o.ungoverned(o.requirement()) + " : n.by.all(p, p.lenient) || c.privileged && n.by.all(p, p.privileged) || c.subjects.exists(s, " +
		"n.by.exists(p, p.name == s.policy && (!p.both || c.privileged))))"
}

// mayDeclare says whether the pod may have a volume of the pipe "n" that nothing mounts: whether its account may, whatever its containers are.
func (o *objects) mayDeclare() string {
	return "(n.by == [] ? " + o.ungoverned("variables.namespaceAllowed") + " : n.by.all(p, p.lenient) || n.by.exists(p, p.name in variables.permits))"
}

// ungoverned says whether the pipe "n" of no policy is permitted: it is guarded and meets the requirement, or it is neither guarded nor refused for its power.
func (o *objects) ungoverned(requirement string) string {
	if o.parameters.Action.Admits() {
		requirement = "true"
	}
	other := "true"
	if o.parameters.EqualPower == admission.ActionDeny {
		other = "!" + matchesName("n.pipe", o.parameters.EqualPowerPipes)
	}
	return "(" + matchesName("n.pipe", o.parameters.GuardedPipes) + " ? " + requirement + " : " + other + ")"
}

// requirement is what the parameters ask of the container "c".
func (o *objects) requirement() string {
	switch o.parameters.Requirement {
	case admission.PrivilegedOrAllowedNamespace:
		return "(variables.namespaceAllowed || c.privileged)"
	case admission.PrivilegedAndAllowedNamespace:
		return "(variables.namespaceAllowed && c.privileged)"
	case admission.AllowedNamespace:
		return "variables.namespaceAllowed"
	}
	return "false"
}

// isWithin says that the guarded directory "h" is in one that the subject "s" permits.
func (o *objects) isWithin() string {
	return "s.within != '' && h.path.matches(" + pattern(certainPath) + ") && " + normal("h.path") + ".matches(s.within)"
}

// RefusalBegins is how every refusal of a floor begins.
const RefusalBegins = "Pipeguard's floor refuses it. "

func (o *objects) message(text string) string {
	return strings.TrimSuffix(RefusalBegins+text+". Policy "+admission.ShownRevision(o.revision)+".", " Policy .")
}
