package access

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestADocumentComesBack(t *testing.T) {
	want := Document{Schema: Schema, Policies: []Policy{{
		Name: "p", Pipes: []string{"csi-proxy-*"}, LogOnly: true,
		Subjects: []Subject{{
			Name: "s", Namespace: "n", Containers: []string{"c"}, ExpiresAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Permission: Permission{
				Methods: []string{"Mkdir"}, PathPrefixes: []string{`C:\x`}, RequireToken: true, Permits: []string{Reformat, NodeAccount}, Shares: []string{`\\a\b*`},
				Services: []string{"x"}, Limits: Limits{Connections: 1, CallsPerSecond: 2, Burst: 3},
			},
		}, {Name: "process", Account: "S-1-5-18", Program: `C:\Driver\driver.exe`}},
	}}}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseDocument(text)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

func TestEachSchemaThatIsNamedIsRead(t *testing.T) {
	for _, schema := range Schemas() {
		text := fmt.Appendf(nil, `{"schema":%q,"policies":[]}`, schema)
		if d, err := ParseDocument(text); err != nil || d.Schema != schema || SchemaOf(text) != schema {
			t.Errorf("%+v of %q, %v", d, SchemaOf(text), err)
		}
	}
	for text, want := range map[string]string{`{"schema":"later","x":1}`: "later", `{"schema":5}`: "", `{}`: "", "x": ""} {
		if got := SchemaOf([]byte(text)); got != want {
			t.Errorf("%s: %q", text, got)
		}
	}
}

func TestADocumentIsRefused(t *testing.T) {
	policy := func(text string) string { return fmt.Sprintf(`{"schema":%q,"policies":[%s]}`, Schema, text) }
	for name, text := range map[string]string{
		"nothing":                       "",
		"null":                          "null",
		"a list":                        "[]",
		"another form":                  `{"schema":"pipeguard.dev/node-rules/v1","policies":[]}`,
		"no form":                       `{"policies":[]}`,
		"no policies":                   fmt.Sprintf(`{"schema":%q}`, Schema),
		"policies that are null":        fmt.Sprintf(`{"schema":%q,"policies":null}`, Schema),
		"more beside them":              fmt.Sprintf(`{"schema":%q,"policies":[],"x":1}`, Schema),
		"policies in another case":      fmt.Sprintf(`{"schema":%q,"policies":[],"Policies":[]}`, Schema),
		"a policy that is null":         policy("null"),
		"two values":                    policy("") + policy(""),
		"unknown words":                 policy(`{"name":"p","pipes":["a"],"callers":[]}`),
		"a policy of no name":           policy(`{"name":"","pipes":["a"]}`),
		"a policy of no pipes":          policy(`{"name":"p","pipes":[]}`),
		"a pipe with a space":           policy(`{"name":"p","pipes":["csi-proxy-disk-v1 "]}`),
		"a pipe that does not show":     policy("{\"name\":\"p\",\"pipes\":[\"csi-proxy-disk-v1\u200b\"]}"),
		"a pipe that is a dot":          policy(`{"name":"p","pipes":["."]}`),
		"a pipe that ends in a dot":     policy(`{"name":"p","pipes":["csi-proxy-disk-v1."]}`),
		"a pipe of any letter":          policy(`{"name":"p","pipes":["?"]}`),
		"a name twice":                  policy(`{"name":"p","pipes":["a"]},{"name":"p","pipes":["b"]}`),
		"a subject of no name":          policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"","namespace":"n"}]}`),
		"a subject of no namespace":     policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":""}]}`),
		"a subject twice":               policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n"},{"name":"s","namespace":"m"}]}`),
		"a program of no account":       policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","program":"C:\\d\\x.exe"}]}`),
		"an account of no program":      policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","account":"S-1-5-18"}]}`),
		"programs of a directory":       policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","account":"S-1-5-18","program":"C:\\d\\*"}]}`),
		"a process of a namespace":      policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","account":"S-1-5-18","program":"C:\\d\\x.exe"}]}`),
		"an account of a namespace":     policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","account":"S-1-5-18"}]}`),
		"a permit that there is not":    policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","permits":["Everything"]}]}`),
		"the node's account everywhere": policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","permits":["NodeAccount"]}]}`),
		"a share of every server":       policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","shares":["\\\\*\\x"]}]}`),
		"every service":                 policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","services":["*"]}]}`),
		"a limit below zero":            policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","limits":{"connections":-1}}]}`),
		"a key in another case":         policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","Namespace":"n"}]}`),
		"a key that folds to another":   policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","nameſpace":"evil"}]}`),
		"an end before all time":        policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","expiresAt":"0001-01-01T00:00:00Z"}]}`),
		"a list that is null":           policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","serviceAccounts":null}]}`),
		"a list that is empty":          policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","methods":[]}]}`),
		"a limit of none":               policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","limits":{"connections":0}}]}`),
		"a pipe in capital letters":     policy(`{"name":"p","pipes":["CSI-PROXY-DISK-V1"]}`),
		"the full name of a pipe":       policy(`{"name":"p","pipes":["\\\\.\\pipe\\csi-proxy-disk-v1"]}`),
		"a star within a pipe":          policy(`{"name":"p","pipes":["csi-*-v1"]}`),
		"a subject with a slash":        policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s/t","namespace":"n"}]}`),
		"an account without a name":     policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","serviceAccounts":[""]}]}`),
		"a container without a name":    policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","containers":["a",""]}]}`),
		"an image without a name":       policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","images":[""]}]}`),
		"a method without a name":       policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","methods":[""]}]}`),
		"a path without a name":         policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","pathPrefixes":[""]}]}`),
		"a pipe without a name":         policy(`{"name":"p","pipes":["a",""]}`),
		"methods of a whole policy":     policy(`{"name":"p","pipes":["a"],"methods":["Mkdir"]}`),
		"an end that is no time":        policy(`{"name":"p","pipes":["a"],"subjects":[{"name":"s","namespace":"n","expiresAt":"soon"}]}`),
	} {
		if d, err := ParseDocument([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

// Whoever reads a bundle reads what a node does: archives write keys in another order, and nothing else is another.
func TestTheOrderOfKeysDoesNotMatter(t *testing.T) {
	text := fmt.Appendf(nil, `{"policies":[{"subjects":[{"namespace":"n","name":"s"}],"pipes":["a"],"name":"p"}], "schema":%q}`, Schema)
	if d, err := ParseDocument(text); err != nil || d.Policies[0].Subjects[0].Namespace != "n" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Which of two releases is the older one is told by the form, and a refusal says which end to upgrade.
func TestAnotherFormNamesTheEndToUpgrade(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":"pipeguard.dev/node-rules/v3","policies":[],"more":1}`:                  "a later release made it; upgrade this program",
		`{"schema":"pipeguard.dev/node-rules/v10","policies":[]}`:                          "a later release made it; upgrade this program",
		`{"schema":"pipeguard.dev/node-rules/v1","policies":[]}`:                           "an earlier release made it; upgrade the webhook",
		`{"schema":"pipeguard.dev/node-rules/vX","policies":[]}`:                           "no release of Pipeguard made it",
		`{"schema":"example.com/node-rules/v3","policies":[]}`:                             "no release of Pipeguard made it",
		fmt.Sprintf(`{"schema":%q,"policies":[],"more":1}`, Schema):                        "if a later release made it, upgrade this program",
		fmt.Sprintf(`{"schema":%q,"policies":[{"name":"p","pipes":["a"],"x":1}]}`, Schema): `unknown field "x": if a later release made it, upgrade this program`,
	} {
		if _, err := ParseDocument([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
