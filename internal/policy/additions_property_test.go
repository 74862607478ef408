package policy_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies"
	"github.com/pipeguard/pipeguard/policies/node"
)

// words are the names that a base defines, declares or calls: what an exemption would have to take over.
var words = regexp.MustCompile(`[a-z_]+(\.[a-z_0-9]+)?`)

// heads are the beginnings of rules, with the operands of functions.
var heads = regexp.MustCompile(`(?m)^([a-z_]+)(\([^)]*\))?`)

// author writes additions: some harmless, some not.
type author struct {
	*rand.Rand
	taken []string
	heads []string // of the base's rules, with any operand for each
}

func newAuthor(e enforcement, seed uint64) author {
	var taken, shapes []string
	for _, text := range e.base.WithoutTests() {
		taken = append(taken, words.FindAllString(text, -1)...)
		for _, h := range heads.FindAllStringSubmatch(text, -1) {
			operands := strings.TrimSuffix(strings.Repeat("_, ", strings.Count(h[2], ",")+1), ", ")
			if h[2] == "" {
				shapes = append(shapes, h[1])
			} else if h[1] != "default" {
				shapes = append(shapes, h[1]+"("+operands+")")
			}
		}
	}
	slices.Sort(taken)
	slices.Sort(shapes)
	return author{rand.New(rand.NewPCG(seed, 12)), slices.Compact(taken), slices.Compact(shapes)} //nolint:gosec // a test is to be repeatable
}

func (a author) of(choices ...string) string { return choices[a.IntN(len(choices))] }

func (a author) name() string {
	if a.IntN(3) > 0 {
		return a.of("house_a", "house_b", "house_c")
	}
	return a.taken[a.IntN(len(a.taken))]
}

func (a author) condition() string {
	return a.of("true", `startswith(input.namespace, "evil")`, `startswith(input.peer.pod.namespace, "evil")`, `not input.peer.pod == null`, "data.HOME.RULE", "not data.HOME.allowed", "count(data.HOME.findings) == 0",
		"input.mounts[i].privileged", `some mount in input.mounts; startswith(mount.field, "s")`, a.name(), "not "+a.name(), a.name()+"(input)", `every x in input.containers { x.name != "y" }`)
}

func (a author) rule() string {
	finding := fmt.Sprintf(`{"code": "A%d", "effect": %q}`, a.IntN(3), a.of("deny", "warn", "audit"))
	switch a.IntN(12) {
	case 9, 10:
		return fmt.Sprintf("%s if { %s }", a.heads[a.IntN(len(a.heads))], a.condition())
	case 11:
		return fmt.Sprintf("%s := %s if { %s }", a.heads[a.IntN(len(a.heads))], a.of("true", `"subject"`, `"warn"`), a.condition())
	case 0, 1, 2:
		return fmt.Sprintf("findings contains %s if { %s }", finding, a.condition())
	case 3:
		return fmt.Sprintf("advice contains %s if { %s }", finding, a.condition())
	case 4:
		return fmt.Sprintf("%s if { %s }", a.name(), a.condition())
	case 5:
		return fmt.Sprintf("%s := %s", a.name(), a.of("true", "set()", "[]", `"none"`))
	case 6:
		return fmt.Sprintf("%s(_) := %s if { %s }", a.name(), a.of("true", "false", `"subject"`), a.condition())
	case 7:
		return fmt.Sprintf("default %s := %s", a.name(), a.of("true", "false"))
	default:
		return fmt.Sprintf("%s[x] := true if { some x in [\"RULE\", \"y\"]; %s }", a.of(a.name(), "LAST", "findings"), a.condition())
	}
}

func (a author) module() string {
	lines := []string{"package " + a.of("HOME", "HOME", "HOME", "HOME", "pipeguard", "HOME.house", "house", "HOME.RULE")}
	for range 1 + a.IntN(3) {
		lines = append(lines, a.rule())
	}
	return strings.Join(lines, "\n\n") + "\n"
}

// inputs are the examples of a base, each as it is and in variations.
func (e enforcement) inputs(t testing.TB) []ast.Value {
	t.Helper()
	examples := policies.Examples()
	if e.name == "node" {
		examples = node.Examples()
	}
	files, err := fs.Glob(examples, "*/input.json")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	var out []ast.Value
	for _, name := range files {
		text, err := fs.ReadFile(examples, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, change := range []struct{ from, to string }{{"", ""}, {`"privileged": false`, `"privileged": true`}, {`"namespace": "`, `"namespace": "evil`}, {`"schema": "`, `"schema": "x`}} {
			varied := string(text)
			if change.from != "" {
				varied = strings.ReplaceAll(varied, change.from, change.to)
			}
			var input any
			if err := json.Unmarshal([]byte(varied), &input); err != nil {
				t.Fatal(err)
			}
			v, err := policy.ToValue(input)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
	}
	return out
}

// decisions are those about each input; nil where there is none, which refuses.
func decisions(t testing.TB, e enforcement, m policy.Modules, inputs []ast.Value) ([]*policy.Decision, error) {
	t.Helper()
	engine, err := policy.New(e.options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := engine.Activate(t.Context(), m); err != nil {
		return nil, err
	}
	out := make([]*policy.Decision, len(inputs))
	for i, input := range inputs {
		if d, err := engine.Decide(t.Context(), input); err == nil {
			out[i] = &d
		}
	}
	return out, nil
}

// lost returns a finding that the base makes and a decision with additions does not.
func lost(base, with policy.Decision) (policy.Finding, bool) {
	if slices.ContainsFunc(with.Findings, func(f policy.Finding) bool {
		return f.Code == policy.CodeAdviceFailed && strings.HasPrefix(f.Message, "advice could not be evaluated")
	}) {
		base.Findings = slices.DeleteFunc(slices.Clone(base.Findings), func(f policy.Finding) bool { return f.Code == "PG009" }) // it is advice
	}
	for _, f := range base.Findings {
		if !slices.Contains(with.Findings, f) {
			return f, true
		}
	}
	return policy.Finding{}, false
}

// Whatever an author writes: if it is taken, the base's findings are all still made, and what it refuses stays refused.
func TestNoAdditionThatIsTakenIsLaxerThanItsBase(t *testing.T) {
	policy.WithoutRaceDetector(t)
	const rounds = 200
	for _, e := range enforcements(t) {
		t.Run(e.name, func(t *testing.T) {
			inputs := e.inputs(t)
			plain, err := decisions(t, e, e.with(nil), inputs)
			if err != nil {
				t.Fatal(err)
			}
			taken, refused := 0, 0
			for seed := range uint64(rounds) {
				text := newAuthor(e, seed).module()
				m := e.with(map[string]string{"house/a.rego": text, "house/a_test.rego": "package house_test\n\ntest_it if true\n"})
				with, err := decisions(t, e, m, inputs)
				if err != nil {
					refused++
					continue
				}
				taken++
				for i := range inputs {
					switch {
					case with[i] == nil:
					case plain[i] == nil || !plain[i].Allowed && with[i].Allowed:
						t.Errorf("input %d is allowed by\n%s", i, m.Files["house/a.rego"])
					default:
						if f, ok := lost(*plain[i], *with[i]); ok {
							t.Errorf("finding %+v about input %d is lost by\n%s", f, i, m.Files["house/a.rego"])
						}
					}
				}
			}
			if taken < rounds/20 || refused < rounds/4 {
				t.Errorf("%d taken and %d refused: that shows nothing", taken, refused)
			}
			t.Logf("%d taken, %d refused", taken, refused)
		})
	}
}
