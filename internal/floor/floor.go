package floor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/internal/admission"
)

// RevisionAnnotation is the annotation of each object with the revision of the policies that it was made of, as the webhook calls it.
const RevisionAnnotation = "pipeguard.dev/revision"

// Options are what a floor is made of.
type Options struct {
	// Name is that of the objects about pods; those about PersistentVolumes have "-volumes" behind it.
	Name string
	// Policies are the parameters and PipePolicies that the webhook decides by.
	Policies admission.Policies
	// Revision is what the webhook calls them; it may be empty.
	Revision string
	// Labels are for every object.
	Labels map[string]string
	// Static names the objects as an API server wants them that reads them from files: ".static.k8s.io" is behind each name.
	Static bool
}

// Floor are the objects, with every field that the API server would give a default.
type Floor struct {
	Policies []admissionv1.ValidatingAdmissionPolicy
	Bindings []admissionv1.ValidatingAdmissionPolicyBinding
	// LeftOut are the names of policies with a subject that is too large to be said, or for which there is no room: the floor refuses what only that permits.
	LeftOut []string
}

// Names are the names of the objects: each is that of a policy and of its binding.
func Names(name string) []string { return []string{name, name + "-volumes"} }

// ErrTooLarge is the error of policies of which there are more than a floor can say.
var ErrTooLarge = errors.New("the policies are too many for a floor")

const (
	// longestChunk is how many bytes of literals an expression has, and one literal more.
	// The API server takes time for a list that grows with the square of its length, at each change of a floor.
	longestChunk = 5_000
	// longestSubject is how many bytes the literal of a subject may have. A longer one is left out, which permits nothing.
	longestSubject = 40_000
	// mostPatterns is how many patterns of pipes the paths of an object may be compared with.
	mostPatterns = 40_000
	// branches bounds how deep an expression is nested; CEL reads 250.
	branches = 50
)

// objects is a floor that is being made.
type objects struct {
	parameters         admission.Parameters
	revision           string
	directories        directories
	refusesHostProcess bool
	admitsLeads        bool // what may lead to any pipe, or to any directory, passes
	characters         int  // how many all host paths of an object may have

	chunks, policyChunks []variable // subjects and policies
	subjects, namespaces string     // expressions
	doors                int        // how many host paths an object may have that would have to be permitted
	leftOut              []string
}

// New makes a floor. An error is about the policies, which Validate of package admission would refuse too, or is ErrTooLarge.
func New(o Options) (*Floor, error) {
	if err := o.Policies.Validate(); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	p := o.Policies.Parameters
	made := &objects{parameters: p, revision: o.Revision, refusesHostProcess: p.HostProcess == admission.ActionDeny}
	made.admitsLeads = o.Policies.StrictestAction().Admits() && p.EqualPower != admission.ActionDeny && p.HostPaths != admission.ActionDeny
	var lists [][]string
	if p.HostPaths == admission.ActionDeny {
		lists = append(lists, p.GuardedHostPaths)
	}
	if p.EqualPower == admission.ActionDeny {
		lists = append(lists, p.EqualPowerPaths)
	}
	var err error
	if made.directories, err = guardedDirectories(lists...); err != nil {
		return nil, fmt.Errorf("floor: %w", err)
	}
	made.characters = charactersFor(made.directories)
	made.say(o.Policies.Permissions())
	names := Names(o.Name)
	if o.Static {
		for i := range names {
			names[i] += ".static.k8s.io"
		}
	}
	f := &Floor{
		Policies: []admissionv1.ValidatingAdmissionPolicy{
			policy(names[0], podRules, made.podConditions(), made.podVariables(), made.podValidations()),
			policy(names[1], volumeRules, nil, made.volumeVariables(), made.volumeValidations()),
		},
		LeftOut: made.leftOut,
	}
	for i := range f.Policies {
		if !canBeStored(&f.Policies[i].Spec) {
			return nil, fmt.Errorf("floor: %w", ErrTooLarge)
		}
	}
	for i := range f.Policies {
		meta := metav1.ObjectMeta{Name: names[i], Labels: maps.Clone(o.Labels), Annotations: map[string]string{RevisionAnnotation: o.Revision}}
		f.Policies[i].ObjectMeta = meta
		f.Bindings = append(f.Bindings, admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   bindingType,
			ObjectMeta: *meta.DeepCopy(),
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: names[i], ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		})
	}
	return f, nil
}

// charactersFor is how many characters the host paths of an object may have together, so that to compare them with all patterns costs less than half of what one expression may,
// which is a million: a tenth of the length of a text, rounded up, times a quarter of that of a pattern.
func charactersFor(d directories) int {
	const budget = 400_000
	patterns := len(plainPath) + len(device) + len(twoDots)
	if d.related != "" {
		patterns += len(certainPath) + len(d.related)
	}
	return max(longestPath, min(mostItems*longestPath, (budget/(patterns/4+5)-mostItems)*10))
}

// say puts policies and subjects into expressions: literals, and no parameters, since of several parameter objects each would be asked alone.
func (o *objects) say(all map[string]admission.PipePolicy) {
	var names []string
	patterns := 1
	for _, p := range all {
		patterns += len(p.Pipes)
	}
	o.doors = max(1, min(mostDoors, mostPatterns/patterns))
	for i, group := range grouped(policies(all)) {
		name := fmt.Sprintf("policies%d", i)
		o.policyChunks = append(o.policyChunks, variable{name, "[" + strings.Join(group, ", ") + "]"})
		names = append(names, "variables."+name)
	}
	o.policyChunks = append(o.policyChunks, variable{"policies", sum(append(names, "dyn([])"))})
	o.chunks = slices.Clone(o.policyChunks)

	names = nil
	var namespaces []entry
	bySpace, leftOut := subjects(all, o.parameters.HostPaths == admission.ActionDeny)
	o.leftOut = leftOut
	for _, space := range slices.Sorted(maps.Keys(bySpace)) {
		for _, group := range grouped(bySpace[space]) {
			namespaces = append(namespaces, entry{space, "[" + strings.Join(group, ", ") + "]"})
		}
	}
	for i, expression := range choices(namespaces, "dyn([])") {
		name := fmt.Sprintf("subjects%d", i)
		o.chunks = append(o.chunks, variable{name, expression})
		names = append(names, "variables."+name)
	}
	o.subjects = sum(append(names, "dyn([])"))

	namespaces, names = nil, nil
	for _, space := range slices.Sorted(maps.Keys(o.parameters.AllowedNamespaces)) {
		allowed := "true"
		if accounts := o.parameters.AllowedNamespaces[space].ServiceAccounts; len(accounts) > 0 {
			allowed = "variables.account in " + list(accounts)
		}
		namespaces = append(namespaces, entry{space, allowed})
	}
	for i, expression := range choices(namespaces, "false") {
		name := fmt.Sprintf("allowed%d", i)
		o.chunks = append(o.chunks, variable{name, expression})
		names = append(names, "variables."+name)
	}
	o.namespaces = strings.Join(append(names, "false"), " || ")
}

// Bounds, with room for what the API server adds: an expression is read up to 100,000 characters.
const (
	longestExpression = 95_000
	largestObject     = 800_000 // a larger one would be stored, after so many seconds that the request may not be waited for
)

// canBeStored says whether the API server takes a policy. One that it refused would leave an older floor in force, or none.
func canBeStored(s *admissionv1.ValidatingAdmissionPolicySpec) bool {
	var expressions []string
	for _, c := range s.MatchConditions {
		expressions = append(expressions, c.Expression)
	}
	for _, v := range s.Variables {
		expressions = append(expressions, v.Expression)
	}
	for _, v := range s.Validations {
		expressions = append(expressions, v.Expression)
	}
	total := 0
	for _, e := range expressions {
		if total += len(e); len(e) > longestExpression {
			return false
		}
	}
	return total <= largestObject
}

// sum adds lists, halves first: CEL reads an expression 250 levels deep.
func sum(lists []string) string {
	if len(lists) == 1 {
		return lists[0]
	}
	half := len(lists) / 2
	return "(" + sum(lists[:half]) + " + " + sum(lists[half:]) + ")"
}

// grouped puts literals into groups of at most longestChunk bytes.
func grouped(literals []string) (groups [][]string) {
	size := 0
	for _, l := range literals {
		if len(groups) == 0 || size+len(l) > longestChunk {
			groups, size = append(groups, nil), 0
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], l)
		size += len(l)
	}
	return groups
}

// entry is what there is for a namespace.
type entry struct{ namespace, value string }

// choices are expressions that choose what there is for the namespace of the request, so that no more than that is evaluated. A namespace occurs at most once in each.
func choices(entries []entry, none string) (expressions []string) {
	var b strings.Builder
	count, last := 0, ""
	end := func() {
		if count > 0 {
			expressions = append(expressions, b.String()+none)
		}
		b.Reset()
		count, last = 0, ""
	}
	for _, e := range entries {
		if count == branches || e.namespace == last || b.Len() > 0 && b.Len()+len(e.value) > longestChunk {
			end()
		}
		fmt.Fprintf(&b, "variables.space == %s ? %s : ", quote(e.namespace), e.value)
		count, last = count+1, e.namespace
	}
	end()
	return expressions
}

// isCanary is about the dry run by which the leader finds out whether the API server asks the webhook: it is for the webhook to refuse. What is tried is not stored.
var isCanary = fmt.Sprintf("request.?dryRun.orValue(false) && request.kind.kind == 'PodTemplate' && request.?name.orValue('') == %s", quote(admission.APICanaryName))

// podConditions leave out what the floor has nothing to say about: the leader's canary, pods of Linux, and those that ask for nothing of their node.
func (o *objects) podConditions() []admissionv1.MatchCondition {
	about := func(expression string) string {
		return bind("held", holder("object"), bind("spec", "held.?spec.orValue({})", expression))
	}
	return []admissionv1.MatchCondition{
		{Name: "is-no-canary", Expression: "!(" + isCanary + ")"},
		{Name: "may-run-on-windows", Expression: about(mayRunOnWindows)},
		{Name: "asks-for-its-node", Expression: about(isTooLarge(o.characters) + " || " + o.asks())},
	}
}

func policy(name string, rules []admissionv1.NamedRuleWithOperations, conditions []admissionv1.MatchCondition, variables []variable, validations []validation) admissionv1.ValidatingAdmissionPolicy {
	p := admissionv1.ValidatingAdmissionPolicy{
		TypeMeta: policyType,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{
				MatchPolicy: new(admissionv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, ResourceRules: rules,
			},
			MatchConditions: conditions,
		},
	}
	p.Name = name
	for _, v := range variables {
		p.Spec.Variables = append(p.Spec.Variables, admissionv1.Variable{Name: v.name, Expression: v.expression})
	}
	for _, v := range validations {
		p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{Expression: v.expression, Message: v.message, Reason: new(metav1.StatusReasonForbidden)})
	}
	return p
}

// podRules and volumeRules are the kinds that package admission judges, and ephemeral containers.
var podRules, volumeRules = rules()

func rules() (pods, volumes []admissionv1.NamedRuleWithOperations) {
	for _, r := range admission.Resources() {
		scope, resources, to := admissionv1.NamespacedScope, []string{r.Name}, &pods
		if !r.Namespaced {
			scope, to = admissionv1.ClusterScope, &volumes
		}
		if r.Name == "pods" {
			resources = append(resources, "pods/ephemeralcontainers")
		}
		*to = append(*to, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{r.Group}, APIVersions: []string{r.Version}, Resources: resources, Scope: &scope},
		}})
	}
	return pods, volumes
}
