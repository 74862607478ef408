package policyset

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

func TestExamineBlamesTheObjectThatIsToBlame(t *testing.T) {
	broken := module("broken", "b.rego", "package x\n\ny :=\n", "b_test.rego", strings.Replace(goodTest, "house_test", "b_test", 1))
	good := module("good", "a.rego", goodRule, "a_test.rego", goodTest)
	for name, c := range map[string]struct {
		sources          Sources
		kind, object     string
		fault, elsewhere string
	}{
		"a good module":                                      {sources(t, good), KindPolicyModule, "good", "", ""},
		"a good policy":                                      {sources(t, pipes("p")), KindPipePolicy, "p", "", ""},
		"a module that does not parse":                       {sources(t, broken), KindPolicyModule, "broken", "broken/b.rego:4", ""},
		"a module whose test fails":                          {sources(t, module("m", "t_test.rego", failingTest)), KindPolicyModule, "m", "test_that_does_not_hold", ""},
		"a module that opens everything":                     {sources(t, module("m", "a.rego", opensAll, "a_test.rego", passingTest)), KindPolicyModule, "m", "belongs to the base policy", ""},
		"a good module beside a broken one":                  {sources(t, good, broken), KindPolicyModule, "good", "", "broken/b.rego:4"},
		"a good policy beside a broken module":               {sources(t, pipes("p"), broken), KindPipePolicy, "p", "", "broken/b.rego:4"},
		"a module that opens everything beside a broken one": {sources(t, module("m", "a.rego", opensAll, "a_test.rego", passingTest), broken), KindPolicyModule, "m", "belongs to the base policy", "-"},
		"an unfit policy beside a broken module": {
			sources(t, broken, pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Pipes = nil })), KindPipePolicy, "p", `PipePolicy "p"`, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			fault, elsewhere := newTestValidator(t).Examine(t.Context(), c.sources, c.kind, c.object)
			if (fault != nil) != (c.fault != "") || fault != nil && !strings.Contains(fault.Error(), c.fault) {
				t.Errorf("fault %v, want %q", fault, c.fault)
			}
			if c.elsewhere == "-" {
				return
			}
			if (elsewhere != nil) != (c.elsewhere != "") || elsewhere != nil && !strings.Contains(elsewhere.Error(), c.elsewhere) {
				t.Errorf("elsewhere %v, want %q", elsewhere, c.elsewhere)
			}
		})
	}
}

func TestReplacingAnObjectLeavesTheListsAlone(t *testing.T) {
	s := sources(t, pipes("p"), module("m", "a.rego", goodRule, "a_test.rego", goodTest))
	next := s.WithPipePolicy(pipes("p", func(s *v1alpha1.PipePolicySpec) { s.Subjects = nil })).WithPolicyModule(module("m", "b.rego", goodRule, "a_test.rego", goodTest))
	if len(s.PipePolicies[0].Spec.Subjects) != 1 || s.PolicyModules[0].Spec.Modules[0].Name != "a.rego" {
		t.Error("the sources before were changed")
	}
	if len(next.PipePolicies) != 1 || len(next.PipePolicies[0].Spec.Subjects) != 0 || next.PolicyModules[0].Spec.Modules[0].Name != "b.rego" {
		t.Errorf("sources %+v", next)
	}
}
