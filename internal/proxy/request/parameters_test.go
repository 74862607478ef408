package request

import (
	"strings"
	"testing"
)

func TestParametersThatNobodyWouldReadAreRefused(t *testing.T) {
	grant := func(s string) string { return "named: {system: {StopService: " + s + "}}" }
	for name, c := range map[string]struct{ text, want string }{
		"nothing":                           {"", "want a mapping"},
		"a list":                            {"[]", "want a mapping"},
		"no YAML":                           {"a: b: c", "not valid YAML"},
		"settings that look like a comment": {"# only\rnamed: {}\n", "line 1: U+000D"},
		"a value that looks like another":   {"named: {system: {StopService: {pods: {!!binary YQ==: {}}}}}", "line 1: the tag !!binary"},
		"a key twice":                       {"named: {}\nnamed: {}", "not valid YAML"},
		"an unknown key":                    {"name: {}", `unknown name "name"; known are named`},
		"nobody":                            {"named: {}", "named: want a mapping"},
		"an unknown group":                  {"named: {System: {StopService: {}}}", `named: unknown name "System"`},
		"an unknown operation":              {"named: {system: {HaltService: {}}}", `named.system: unknown name "HaltService"; known are Get`},
		"an operation by its served name":   {"named: {disk: {SetAttachState: {}}}", `unknown name "SetAttachState"`},
		"an unknown kind of caller":         {grant("{users: {}}"), `unknown name "users"; known are hosts, pods`},
		"no namespace":                      {grant("{pods: {}}"), "want a mapping"},
		"an empty namespace":                {grant(`{pods: {"": {a: [{}]}}}`), "an empty name"},
		"an empty account":                  {grant(`{pods: {a: {"": [{}]}}}`), "an empty name"},
		"accounts as a list":                {grant("{pods: {a: [b]}}"), "want a mapping"},
		"no entries":                        {grant("{pods: {a: {b: []}}}"), "want a list"},
		"entries as a mapping":              {grant("{pods: {a: {b: {}}}}"), "want a list"},
		"an entry that is null":             {grant("{pods: {a: {b: [null]}}}"), "want a mapping"},
		"an unknown limit":                  {grant("{pods: {a: {b: [{images: [x]}]}}}"), `unknown name "images"`},
		"programs of a pod":                 {grant("{pods: {a: {b: [{programs: [x]}]}}}"), `unknown name "programs"`},
		"containers of a host":              {grant("{hosts: {a: [{programs: [x], containers: [x]}]}}"), `unknown name "containers"`},
		"a host without programs":           {grant("{hosts: {a: [{}]}}"), "needs programs"},
		"a limit without values":            {grant("{pods: {a: {b: [{services: []}]}}}"), "want a list that is not empty"},
		"a limit that is null":              {grant("{pods: {a: {b: [{services: }]}}}"), "want a list"},
		"a limit that is a text":            {grant("{pods: {a: {b: [{services: x}]}}}"), "want a list"},
		"a value that is a number":          {grant("{pods: {a: {b: [{services: [1]}]}}}"), "want texts"},
		"a value that is empty":             {grant(`{pods: {a: {b: [{services: [""]}]}}}`), "want texts"},
		"too much":                          {strings.Repeat(" ", maxParameters+1), "more than"},
	} {
		if data, err := ParseParameters([]byte(c.text)); data != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", name, data, err, c.want)
		}
	}
	for _, text := range []string{grant("{pods: {a: {b: [{}]}}}"), grant(`{pods: {a: {b: [{containers: [c], services: [s]}]}}, hosts: {S-1: [{programs: ['C:\x']}]}}`)} {
		if data, err := ParseParameters([]byte(text)); err != nil || data == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
