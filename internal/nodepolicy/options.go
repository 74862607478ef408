package nodepolicy

import (
	"slices"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// Entrypoint is the document that is asked for.
const Entrypoint = "data.pipeguard.node.decision"

// maxInput bounds an input in bytes. It holds the longest lists of the longest texts that a call is shown with, twice.
const maxInput = 256 << 10

// EngineOptions returns o as nodes use it: with the entrypoint, the checks and the bound of inputs.
func EngineOptions(o policy.Options) policy.Options {
	o.Entrypoint = Entrypoint
	o.Checks = slices.Concat(checks(), o.Checks)
	if o.MaxInputBytes == 0 {
		o.MaxInputBytes = maxInput
	}
	return o
}
