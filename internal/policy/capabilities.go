package policy

import (
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// allowedBuiltins are the functions that a policy may call: those with a cost, and those that are modest. They are lists of what is in, not of what is out, so that
// a function that a later OPA brings is out until its cost is known. What is left out, and why:
//
//   - http.send, net.*, providers.aws.*: they reach out of the process.
//   - opa.runtime, rego.parse_module, rego.metadata.*: they show the process or the policies themselves.
//   - time.now_ns, rand.intn, uuid.*: a decision must be the same when it is replayed. input.now is the clock.
//   - time functions that take a time zone: they read files of the machine.
//   - trace: it writes. A call of print is erased when a module is compiled.
//   - crypto.*, io.jwt.*: a policy signs nothing, and holds no key to verify with.
//   - numbers.range, numbers.range_step, bits.*: one call with small operands can keep a core busy, and the time-out is
//     not looked at inside a call.
//   - mul, div, rem, product, floor, ceil, round, abs, units.*: nothing that is judged here is a product, and numbers
//     that are squared again and again double their digits.
//   - strings.replace_n, strings.render_template, regex.replace, json.patch, yaml.*, graphql.*, graph.*, array.flatten,
//     object.union_n, regex.globs_match, glob.*, net.cidr_expand: they amplify their operands, or have had
//     patterns on which they take exponential time, and regex.match (time linear in the text) does what policies need.
//   - json.match_schema, json.verify_schema: they compile a schema that may name remote ones.
//   - deprecated functions (all, any, cast_*, re_match, set_diff).
//
// concat, sprintf and the functions of regex are in, but with a constant first operand: see bounded.
var allowedBuiltins = slices.Concat(slices.Collect(maps.Keys(costs)), modest)

// testBuiltin is what the test runner inserts into table tests; it only marks which case is running.
const testBuiltin = "internal.test_case"

// compilerBuiltins are what only the compiler calls.
var compilerBuiltins = []string{chargeBuiltin, weightBuiltin, withBuiltin, findingBuiltin}

// allowedFeatures are the parts of the language that modules may use. Experimental keywords are out.
var allowedFeatures = []string{ast.FeatureRegoV1, ast.FeatureKeywordsInRefs, ast.FeatureTemplateStrings}

// capabilities returns what modules compile against, and extra builtins.
func capabilities(extra ...string) *ast.Capabilities {
	all := ast.CapabilitiesForThisVersion()
	c := &ast.Capabilities{
		AllowNet: []string{}, // empty, not nil: nil means every host
	}
	for _, b := range all.Builtins {
		if slices.Contains(allowedBuiltins, b.Name) || slices.Contains(extra, b.Name) {
			c.Builtins = append(c.Builtins, b)
		}
	}
	for _, f := range all.Features {
		if slices.Contains(allowedFeatures, f) {
			c.Features = append(c.Features, f)
		}
	}
	return c
}

// explainBuiltin says of a function that OPA has and policies may not call that it is not a misspelling.
func explainBuiltin(p Problem) Problem {
	name, ok := strings.CutPrefix(p.Message, "undefined function ")
	if !ok {
		return p
	}
	known := slices.ContainsFunc(ast.CapabilitiesForThisVersion().Builtins, func(b *ast.Builtin) bool { return b.Name == name })
	if known {
		p.Code, p.Message = CodeBuiltin, "function "+name+" is not available to policies"
	}
	return p
}
