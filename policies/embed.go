// Package policies holds the default Rego policy, with its tests, example inputs and the schema of the input.
// It contains no logic: the Rego here is judged like any other before it decides.
package policies

import (
	"embed"
	"io/fs"
)

//go:embed *.rego
var rules embed.FS

//go:embed examples/*/input.json
var examples embed.FS

//go:embed input.schema.json
var inputSchema []byte

// FS returns the default policy: the rule files and their tests, without parameters.
func FS() fs.FS { return rules }

// Examples returns one input per idea, as <idea>/input.json. Each has a directory of its own because OPA merges
// the JSON files of one directory into one document, and would refuse to load two inputs.
func Examples() fs.FS {
	sub, err := fs.Sub(examples, "examples")
	if err != nil {
		panic(err) // only an invalid constant path can get here
	}
	return sub
}

// InputSchema returns the JSON schema (draft 7) of the input, schema version pipeguard.dev/admission/v1.
// Both `opa check --schema` and editors read it.
func InputSchema() []byte { return append([]byte(nil), inputSchema...) }
