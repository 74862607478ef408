package policy

import "testing"

func TestAModuleThatReadsWhatIsGoneIsToldWhatToRead(t *testing.T) {
	const head = "package x\n\n"
	const decision = "decision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n\nfindings contains {\"code\": \"X1\", \"effect\": \"deny\"} if "
	for body, isGone := range map[string]bool{
		head + decision + "data.old.names[input.a]":                                                        true,
		head + decision + "data.old.names == {}":                                                           true,
		head + "import data.old.names as known\n\n" + decision + "{\n\tsome n in known\n\tn == input.a\n}": true,
		head + decision + "object.get(data.old.names, \"a\", 1) == 1":                                      true,
		head + decision + "data.old.names_of[input.a]":                                                     false,
		head + decision + "data.old.other[input.a]":                                                        false,
		head + decision + "input.a == \"data.old.names\"":                                                  false,
		head + "# data.old.names\n" + decision + "input.a":                                                 false,
	} {
		o := patientOptions(t)
		o.Entrypoint = "data.x.decision"
		_, problems := compile(t.Context(), Modules{Files: map[string]string{"x.rego": body}, Gone: map[string]string{"old.names": "read input.names"}}, o)
		switch {
		case !isGone && len(problems) > 0, isGone && len(problems) != 1:
			t.Errorf("%s: %v", body, problems)
		case isGone && (problems[0].File != "x.rego" || problems[0].Message != "data.old.names is gone: read input.names"):
			t.Errorf("%s: %+v", body, problems[0])
		}
	}
}
