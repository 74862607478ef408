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

// Modules are the built-in policy and what is added to it, over data. An addition brings its own tests, and adds to findings
// or advice of package pipeguard.node: the engine refuses one that does more than that (see policy.Modules).
//
// The built-in policy is the base of what is returned: an engine whose option BaseTested is set compiles it and asks the checks
// of this package, but leaves out its tests, which passed when the program was made.
func Modules(added map[string]string, data map[string]any) (policy.Modules, error) {
	base, err := policy.LoadFS(node.FS())
	if err != nil {
		return policy.Modules{}, fmt.Errorf("built-in request policy: %w", err)
	}
	base.Data = data
	all := policy.Modules{Files: base.WithoutTests(), Data: data, Base: &base, InputSchema: node.InputSchema()}
	if len(added) == 0 {
		return all, nil
	}
	if !slices.ContainsFunc(slices.Collect(maps.Keys(added)), func(name string) bool { return strings.HasSuffix(name, testSuffix) }) {
		return policy.Modules{}, fmt.Errorf("request policy: what is added brings no test: want a file that ends in %s", testSuffix)
	}
	maps.Copy(all.Files, added)
	return all, nil
}
