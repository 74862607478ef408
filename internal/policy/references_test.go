package policy

import "testing"

func TestAModuleThatReadsWhatIsGoneIsToldWhatToRead(t *testing.T) {
	const isGone = "data.old.names is gone: read input.names"
	const isOpen = " is read by a name that is not written here: write it; " + isGone
	const head = "package x\n\n"
	const decision = "decision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n\nfindings contains {\"code\": \"X1\", \"effect\": \"deny\"} if "
	for body, want := range map[string]string{
		head + decision + "data.old.names[input.a]":                                                        isGone,
		head + decision + "data.old.names == {}":                                                           isGone,
		head + "import data.old.names as known\n\n" + decision + "{\n\tsome n in known\n\tn == input.a\n}": isGone,
		head + decision + "object.get(data.old.names, \"a\", 1) == 1":                                      isGone,
		head + decision + "data.old.names_of[input.a]":                                                     "",
		head + decision + "data.old.other[input.a]":                                                        "",
		head + decision + "input.a == \"data.old.names\"":                                                  "",
		head + decision + "{\n\tk := \"names\"\n\tdata.old[k][input.a]\n}":                                 "data.old" + isOpen,
		head + decision + "{\n\tk := \"old\"\n\tdata[k].names\n}":                                          "data" + isOpen,
		head + decision + "{\n\tk := \"names\"\n\tdata.other[k]\n}":                                        "",
		head + "# data.old.names\n" + decision + "input.a":                                                 "",
	} {
		o := patientOptions(t)
		o.Entrypoint = "data.x.decision"
		_, problems := compile(t.Context(), Modules{Files: map[string]string{"x.rego": body}, Gone: map[string]string{"old.names": "read input.names"}}, o)
		switch {
		case want == "" && len(problems) > 0, want != "" && len(problems) != 1:
			t.Errorf("%s: %v", body, problems)
		case want != "" && (problems[0].File != "x.rego" || problems[0].Message != want):
			t.Errorf("%s: %+v", body, problems[0])
		}
	}
}
