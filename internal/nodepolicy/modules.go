package nodepolicy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies/node"
)

// testSuffix ends the names of files that hold tests.
const testSuffix = "_test.rego"

// gone are documents that request policies could read once, and what to read in place of each.
var gone = map[string]string{
	"pipeguard.parameters": isInput,
	"pipeguard.policies":   isInput,
}

const isInput = "the access list has said before whether the call is permitted, and whether its caller is named for it is input.named"

// Whole are modules that are a request policy of their own, as the built-in ones are.
func Whole(files map[string]string) policy.Modules {
	return policy.Modules{Files: files, InputSchema: node.InputSchema(), Gone: gone}
}

// Modules are the built-in policy and what is added to it. An addition brings its own tests, and adds to findings or advice of
// package pipeguard.node: the engine refuses one that does more than that (see policy.Modules).
//
// The built-in policy is the base of what is returned: an engine whose option BaseTested is set compiles it and asks the checks
// of this package, but leaves out its tests, which passed when the program was made.
func Modules(added map[string]string) (policy.Modules, error) {
	base, err := policy.LoadFS(node.FS())
	if err != nil {
		return policy.Modules{}, fmt.Errorf("built-in request policy: %w", err)
	}
	all := Whole(base.WithoutTests())
	all.Base = &base
	if len(added) == 0 {
		return all, nil
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(added)), func(name string) bool { return strings.HasSuffix(name, testSuffix) }) {
		return policy.Modules{}, fmt.Errorf("request policy: what is added brings no test: want a file that ends in %s", testSuffix)
	}
	maps.Copy(all.Files, added)
	return all, nil
}

// Entrypoint is the document that is asked for.
const Entrypoint = "data.pipeguard.node.decision"

// maxInput bounds an input in bytes. It holds the longest lists of the longest texts that a call is shown with, twice.
const maxInput = 256 << 10

// EngineOptions returns o as nodes use it: with the entrypoint, what rules ask for first, the checks and the bound of inputs.
func EngineOptions(o policy.Options) policy.Options {
	o.Entrypoint = Entrypoint
	// A request that is passed on unread is null, and its operation a name that the client chose: it is evaluated each time.
	o.Selector = &policy.Selector{Texts: [2]string{"group", "operation"}, Types: map[string]string{"request": "object", "peer": "object", "named": "boolean"}}
	o.Checks = slices.Concat(checks(), o.Checks)
	if o.MaxInputBytes == 0 {
		o.MaxInputBytes = maxInput
	}
	return o
}
