package floor

import (
	"cmp"
	"context"
	"slices"
	"testing"

	celgo "github.com/google/cel-go/cel"
	celtypes "github.com/google/cel-go/common/types"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/cel/environment"

	product "github.com/pipeguard/pipeguard/internal/floor"
)

// judge is a floor as the API server has it in its memory.
type judge struct{ policies []compiled }

type compiled struct {
	name                    string
	rules                   []admissionregistrationv1.NamedRuleWithOperations
	conditions, validations cel.ConditionEvaluator
}

// newJudge compiles a floor in the way of the ValidatingAdmissionPolicy plugin (compilePolicy of k8s.io/apiserver/pkg/admission/plugin/policy/validating).
func newJudge(t testing.TB, f *product.Floor) *judge {
	t.Helper()
	j := &judge{}
	for i := range f.Policies {
		p := &f.Policies[i]
		compiler, err := cel.NewCompositedCompiler(halfOfTheLimit(t))
		if err != nil {
			t.Fatal(err)
		}
		options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
		for _, v := range p.Spec.Variables {
			if got := compiler.CompileAndStoreVariable(&validating.Variable{Name: v.Name, Expression: v.Expression}, options, environment.StoredExpressions); got.Error != nil {
				t.Fatalf("%s: variable %s: %v\n%s", p.Name, v.Name, got.Error, v.Expression)
			}
		}
		var conditions, validations []cel.ExpressionAccessor
		for i := range p.Spec.MatchConditions {
			conditions = append(conditions, (*matchconditions.MatchCondition)(&p.Spec.MatchConditions[i]))
		}
		for _, v := range p.Spec.Validations {
			validations = append(validations, &validating.ValidationCondition{Expression: v.Expression, Message: v.Message, Reason: v.Reason})
		}
		c := compiled{
			p.Name, p.Spec.MatchConstraints.ResourceRules,
			compiler.CompileCondition(conditions, options, environment.StoredExpressions), compiler.CompileCondition(validations, options, environment.StoredExpressions),
		}
		for _, errs := range [][]error{c.conditions.CompilationErrors(), c.validations.CompilationErrors()} {
			for _, err := range errs {
				t.Fatalf("%s: %v", p.Name, err)
			}
		}
		j.policies = append(j.policies, c)
	}
	return j
}

// halfOfTheLimit are the expressions of the API server, each of which may cost half of what it may there: what takes more fails.
func halfOfTheLimit(t testing.TB) *environment.EnvSet {
	t.Helper()
	set, err := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()).Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0), ProgramOptions: []celgo.ProgramOption{celgo.CostLimit(celconfig.PerCallLimit / 2)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// request is what the API server asks about.
type request struct {
	kind           schema.GroupVersionKind
	resource, sub  string
	object, before runtime.Object
	operation      admission.Operation
	namespace      string
	user           user.DefaultInfo
	name           string // "x" where it is empty
	dryRun         bool
}

// verdict is what a floor says of a request. An expression that fails refuses.
type verdict struct {
	allowed  bool
	messages []string
	// cost is that of the validations, conditions that of the match conditions; of two policies, one is about an object.
	cost, conditions int64
	failed           bool
}

func (j *judge) ask(t testing.TB, r *request) verdict {
	t.Helper()
	out := verdict{allowed: true}
	gvr := r.kind.GroupVersion().WithResource(r.resource)
	attr := &admission.VersionedAttributes{
		Attributes:      admission.NewAttributesRecord(r.object, r.before, r.kind, r.namespace, cmp.Or(r.name, "x"), gvr, r.sub, r.operation, nil, r.dryRun, &r.user),
		VersionedObject: admission.NewLazyObject(r.object), VersionedOldObject: admission.NewLazyObject(r.before), VersionedKind: r.kind,
	}
	req := cel.CreateAdmissionRequest(attr.Attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(r.kind))
	for _, p := range j.policies {
		if !p.matches(r) {
			continue
		}
		results, left, err := p.conditions.ForInput(context.Background(), attr, req, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudgetMatchConditions)
		if err != nil {
			out.refuse("condition: " + err.Error())
			out.failed = true
			continue
		}
		out.conditions = celconfig.RuntimeCELCostBudgetMatchConditions - left
		meets := true
		for _, r := range results {
			if r.Error != nil {
				out.refuse("condition: " + r.Error.Error())
				out.failed = true
			}
			meets = meets && r.Error == nil && r.EvalResult == celtypes.True
		}
		if !meets {
			continue
		}
		results, left, err = p.validations.ForInput(context.Background(), attr, req, cel.OptionalVariableBindings{}, nil, celconfig.RuntimeCELCostBudget)
		if err != nil {
			out.refuse("validation: " + err.Error())
			out.failed = true
			continue
		}
		out.cost = celconfig.RuntimeCELCostBudget - left
		for _, r := range results {
			if r.Error != nil {
				out.refuse("validation: " + r.Error.Error())
				out.failed = true
			} else if r.EvalResult != celtypes.True {
				out.refuse(r.ExpressionAccessor.(*validating.ValidationCondition).Message)
			}
		}
	}
	return out
}

func (v *verdict) refuse(message string) { v.allowed, v.messages = false, append(v.messages, message) }

func (p *compiled) matches(r *request) bool {
	resource := r.resource
	if r.sub != "" {
		resource += "/" + r.sub
	}
	for _, rule := range p.rules {
		if rule.APIGroups[0] == r.kind.Group && slices.Contains(rule.Resources, resource) {
			return true
		}
	}
	return false
}
