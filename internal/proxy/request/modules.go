package request

import (
	"fmt"
	"maps"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/policies/node"
)

// Modules are the built-in policy and what is added to it, over data. An addition brings its own tests, and adds to findings
// or advice of package pipeguard.node: it can refuse more, never less. One that defines what the built-in rules rest on is an
// error.
func Modules(added map[string]string, data map[string]any) (policy.Modules, error) {
	base, err := policy.LoadFS(node.FS())
	if err != nil {
		return policy.Modules{}, fmt.Errorf("built-in request policy: %w", err)
	}
	base.Data = data
	if len(added) == 0 {
		return base, nil
	}
	all := policy.Modules{Files: base.WithoutTests(), Data: data, Base: &base}
	builtIn := builtInRules(base)
	for name, text := range added {
		if _, taken := base.Files[name]; taken {
			return policy.Modules{}, fmt.Errorf("request policy: %s is a file of the built-in policy", name)
		}
		if err := checkAddition(name, text, builtIn); err != nil {
			return policy.Modules{}, fmt.Errorf("request policy: %w", err)
		}
	}
	maps.Copy(all.Files, added)
	return all, nil
}
