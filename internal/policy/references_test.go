package policy

import (
	"strings"
	"testing"
)

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

// A closed document as a value has whatever names a rule asks it for, in ways that nobody can follow.
func TestAClosedDocumentIsReadByItsNamesAlone(t *testing.T) {
	const decision = "decision := {\"allowed\": count(findings) == 0, \"findings\": findings}\n\nfindings contains {\"code\": \"X1\", \"effect\": \"deny\"} if "
	const isValue = "data.p.settings is taken as a value: name what is read: data.p.settings.NAME"
	const isOpen = "data.p.settings is read by a name that is not written here: name what is read: data.p.settings.NAME"
	const isAbove = "data.p is taken as a value: name what is read: data.p.settings.NAME"
	const isMisspelt = "data.p.settings.requirment is read here, and there is no such name: did you mean data.p.settings.requirement?"
	for rest, want := range map[string]string{
		"data.p.settings.requirement == 1":                              "",
		"data.p.settings[\"requirement\"] == 1":                         "",
		"data.p.settings.pipes[input.a]":                                "",
		"{\n\tpipes := data.p.settings.pipes\n\tpipes[input.a]\n}":      "",
		"data.p.settings_of[input.a]":                                   "",
		"data.q.settings == {}":                                         "",
		"f\n\nf if input.a with data.p.settings as {}":                  "",
		"f\n\nf if input.a with data.p.settings.pipes as {}":            "",
		"f\n\nf if input.a with data.q as data.p.settings":              isValue,
		"data.p.settings.requirment == 1":                               isMisspelt,
		"not data.p.settings.requirment.a":                              isMisspelt,
		"data.p.settings.nothing == 1":                                  "data.p.settings.nothing is read here, and there is no such name",
		"{\n\ts := data.p.settings\n\ts.pipes[input.a]\n}":              isValue,
		"{\n\tdata.p.settings = s\n\ts.pipes[input.a]\n}":               isValue,
		"{\n\t{\"pipes\": p} = data.p.settings\n\tp[input.a]\n}":        isValue,
		"{\n\twalk(data.p.settings, [[\"pipes\"], v])\n\tv\n}":          isValue,
		"{\n\tsome s in [data.p.settings]\n\ts.pipes\n}":                isValue,
		"{\"a\": data.p.settings}.a.pipes":                              isValue,
		"{data.p.settings}[_].pipes":                                    isValue,
		"count([s | s := data.p.settings]) > 0":                         isValue,
		"every k, _ in data.p.settings { k != \"pipes\" }":              isValue,
		"object.get(data.p.settings, \"pipes\", 1) == 1":                isValue,
		"f(data.p.settings)\n\nf(s) if s.pipes[input.a]":                isValue,
		"s.pipes\n\ns := data.p.settings":                               isValue,
		"s.pipes\n\ns := {} if {\n\tinput.a\n} else := data.p.settings": isValue,
		"contains($\"{data.p.settings}\", \"pipes\")":                   isValue,
		"data.p.settings[input.a]":                                      isOpen,
		"{\n\tsome k\n\tdata.p.settings[k]\n\tk == \"pipes\"\n}":        isOpen,
		"object.get(data.p, \"settings\", {}) == {}":                    isAbove,
		"data.p[input.a]":                                               "data.p is read by a name that is not written here: name what is read: data.p.settings.NAME",
		"data[\"p\"].settings == {}":                                    isValue,
	} {
		o := patientOptions(t)
		o.Entrypoint = "data.x.decision"
		m := Modules{Files: map[string]string{"x.rego": "package x\n\n" + decision + rest}, Closed: []string{"p.settings"}}
		m.Data = map[string]any{"p": map[string]any{"settings": map[string]any{"requirement": 1, "pipes": map[string]any{}}}}
		_, problems := compile(t.Context(), m, o)
		if (want == "") != (len(problems) == 0) || want != "" && (len(problems) != 1 || problems[0].Message != want || problems[0].Code != CodeName) {
			t.Errorf("%s: %v", rest, problems)
		}
		if m.Files["x_test.rego"] = strings.Replace(m.Files["x.rego"], "package x", "package x_test", 1); want != "" {
			m.Files["x.rego"] = "package x\n\n" + decision + "input.a"
			if _, problems := compile(t.Context(), m, o); len(problems) > 0 {
				t.Errorf("%s in a test: %v", rest, problems)
			}
		}
	}
}
