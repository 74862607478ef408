package floor

import (
	"github.com/pipeguard/pipeguard/internal/admission"
)

// volumeVariables are what the validations of PersistentVolumes are made of. They have a policy of their own, in which an update that changes nothing of it passes: without
// that, a volume that is older than its refusal could lose its finalizers no more.
func (o *objects) volumeVariables() []variable {
	all := []variable{
		{"paths", "[dyn(object).spec.?hostPath.?path, dyn(object).spec.?local.?path].filter(p, p.hasValue()).map(p, p.value())"},
		{"unchanged", "request.operation == 'UPDATE' && dyn(oldObject).?spec.orValue({}) == dyn(object).?spec.orValue({})"},
	}
	return append(all, o.policyChunks...)
}

// volumeValidations have no subjects: a volume has no namespace and no account.
func (o *objects) volumeValidations() []validation {
	power := "true"
	if o.parameters.EqualPower == admission.ActionDeny {
		power = "!" + matchesName("n", o.parameters.EqualPowerPipes)
	}
	guarded := "false"
	if o.parameters.Action.Admits() {
		guarded = "true"
	}
	rules := []validation{{
		// The root is not plain: what is in it depends on the mounts, which are not seen.
		"variables.paths.all(p, " + isPlain("p") + " || " + bind("n", pipeName("p"), "n != '' && "+
			bind("by", "variables.policies.filter(q, n in q.exact || q.beginnings.exists(x, n.startsWith(x)))",
				"by == [] ? ("+matchesName("n", o.parameters.GuardedPipes)+" ? "+guarded+" : "+power+") : by.all(q, q.lenient)")) + ")",
		o.message("PG003, PG007: a PersistentVolume leads to a guarded pipe, or its path is not plain, so that it may lead to any. Write it as an absolute path in ASCII, of at most 256 characters, without two dots in a row"),
	}}
	if o.admitsLeads {
		rules = []validation{{"variables.paths.all(p, p != " + quote(admission.NeverAllowedPath) + ")", o.message("PG003: a PersistentVolume leads to the directory of all pipes")}}
	}
	if o.directories.related != "" {
		rules = append(rules, validation{
			"variables.paths.all(p, !" + isPlain("p") + " || " + o.directories.areUnreachedBy("p") + ")",
			o.message("PG008, PG011: a PersistentVolume is a guarded directory, is in one, contains one or is spelled so that it may be one"),
		})
	}
	for i := range rules {
		rules[i].expression = "variables.unchanged || " + rules[i].expression
	}
	return rules
}
