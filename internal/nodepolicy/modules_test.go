package nodepolicy

import (
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// A module that reads who is named, or the PipePolicies, where they were once would find nothing there, and a refusal would vanish.
func TestAModuleThatReadsWhatIsGoneIsRefused(t *testing.T) {
	const head = "package pipeguard.node\n\n"
	const finding = "findings contains {\"code\": \"SITE1\", \"effect\": \"deny\"} if "
	const itself = "rests on that rule itself"
	const parameters, policies = "data.pipeguard.parameters is gone: ", "data.pipeguard.policies is gone: "
	for name, c := range map[string]struct{ text, want string }{
		"who is named":                {head + finding + "not data.pipeguard.parameters.node.named[input.group]", parameters},
		"who is named, by name":       {head + "import data.pipeguard.parameters.node.named as n\n\n" + finding + "not n[input.group]", parameters},
		"all parameters of nodes":     {head + finding + "count(data.pipeguard.parameters.node) == 0", parameters},
		"all parameters":              {head + finding + "object.get(data.pipeguard.parameters, [\"node\", \"named\"], {}) != {}", parameters},
		"parameters by name":          {head + "import data.pipeguard.parameters as p\n\n" + finding + "p.node.named.disk", parameters},
		"parameters in brackets":      {head + finding + "data[\"pipeguard\"][\"parameters\"].node.named.disk", parameters},
		"parameters, computed":        {head + finding + "{\n\tk := \"parameters\"\n\tdata.pipeguard[k].node.named.disk\n}", "data.pipeguard is read by a name that is not written here"},
		"a part of them, computed":    {head + finding + "{\n\tk := \"named\"\n\tdata.pipeguard.parameters.node[k].disk\n}", parameters},
		"parameters in a variable":    {head + finding + "{\n\tp := data.pipeguard.parameters\n\tp.node.named.disk\n}", parameters},
		"policies":                    {head + finding + "count(data.pipeguard.policies) == 0", policies},
		"a policy":                    {head + finding + "data.pipeguard.policies.disks.logOnly", policies},
		"policies by name":            {head + "import data.pipeguard.policies as p\n\n" + finding + "{\n\tsome q in p\n\tinput.operation in q.methods\n}", policies},
		"policies in brackets":        {head + finding + "data.pipeguard[\"policies\"][input.group]", policies},
		"policies, computed":          {head + finding + "{\n\tk := input.group\n\tdata.pipeguard[k]\n}", itself},
		"all of it, computed":         {head + finding + "{\n\tk := \"pipeguard\"\n\tdata[k].policies\n}", "data is read by a name that is not written here"},
		"all of it as a value":        {head + finding + "object.get(data.pipeguard, \"policies\", {}) != {}", itself},
		"all data as a value":         {head + finding + "object.get(data, [\"pipeguard\", \"policies\"], {}) != {}", itself},
		"all of it in a variable":     {head + finding + "{\n\tp := data.pipeguard\n\tp.policies\n}", itself},
		"policies in another package": {"package site\n\nnames := data.pipeguard.policies", policies},
		"in a comprehension":          {head + finding + "count([p | some p in data.pipeguard.policies]) == 0", policies},
		"in a helper":                 {head + "site_has(x) if x in data.pipeguard.policies\n\n" + finding + "site_has(input.group)", policies},
		"whether the caller is named": {head + finding + "input.named == false", ""},
		"the rule of the policy":      {head + finding + "not is_named", ""},
		"the rule by its full name":   {head + finding + "not data.pipeguard.node.is_named", ""},
		"a document of another name":  {head + finding + "data.site.policies[input.group]", "nothing defines it"},
	} {
		m, err := Modules(map[string]string{"site.rego": c.text + "\n", "site_test.rego": "package site_test\n\ntest_site if true\n"})
		if err != nil {
			t.Fatal(err)
		}
		problems := policy.Validate(m, EngineOptions(policy.Options{}))
		var said []string
		for _, p := range problems {
			said = append(said, p.File+": "+p.Message)
		}
		switch text := strings.Join(said, "\n"); {
		case c.want == "" && len(problems) > 0:
			t.Errorf("%s: %s", name, text)
		case c.want != "" && (!strings.Contains(text, c.want) || !strings.Contains(text, "site.rego: ")):
			t.Errorf("%s: %q, want %q", name, text, c.want)
		case c.want == parameters || c.want == policies:
			if !strings.Contains(text, "input.named") {
				t.Errorf("%s: what to read is not said: %s", name, text)
			}
		}
	}
}

// A request policy of its own reads no more than an addition does.
func TestAPolicyOfItsOwnReadsNothingThatIsGone(t *testing.T) {
	m := Whole(map[string]string{
		"site.rego":      "package pipeguard.node\n\ndecision := {\"allowed\": false, \"findings\": [x | some x in data.pipeguard.policies]}\n",
		"site_test.rego": "package site_test\n\ntest_site if true\n",
	})
	problems := policy.Validate(m, EngineOptions(policy.Options{}))
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "data.pipeguard.policies is gone") {
		t.Errorf("%v", problems)
	}
}
