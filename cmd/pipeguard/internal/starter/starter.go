// Package starter holds the template of a node policy for new authors. It refuses nothing before it is edited.
package starter

import (
	"embed"
	"io/fs"
)

//go:embed node/*.rego
var node embed.FS

// Node returns rules that add to the built-in request policy of nodes, and their tests.
func Node() fs.FS {
	sub, err := fs.Sub(node, "node")
	if err != nil {
		panic(err) // only an invalid constant path can get here
	}
	return sub
}
