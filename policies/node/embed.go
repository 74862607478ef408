// Package node holds the default request policy of the proxy in Rego, with its tests, example inputs and the schema of the input.
// It contains no logic: the Rego here is judged like any other before it decides.
package node

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

// FS returns the default request policy: the rule files and their tests, without data.
func FS() fs.FS { return rules }

// Examples returns one input per idea, as <idea>/input.json.
func Examples() fs.FS {
	sub, err := fs.Sub(examples, "examples")
	if err != nil {
		panic(err) // only an invalid constant path can get here
	}
	return sub
}

// InputSchema returns the JSON schema (draft 7) of the input. Both `opa check --schema` and editors read it.
func InputSchema() []byte { return append([]byte(nil), inputSchema...) }
