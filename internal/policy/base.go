package policy

import (
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// query is a prepared query over data that does not change.
type query struct {
	rego.PreparedEvalQuery
	data baseDocuments
}

// baseDocuments answers what an evaluation reads of its data, for all evaluations at once. OPA would read each part from the
// store, and build a cache of what it read for each evaluation anew, which costs more than to look it up.
type baseDocuments struct{ object ast.Object }

// Get returns nil for what is not there: OPA then asks the store, which has the last word. It is asked for the whole of data
// too, of which it leaves out what is OPA's own.
func (d baseDocuments) Get(ref ast.Ref) ast.Value {
	if len(ref) < 2 { //nolint:mnd // data and one name
		return nil
	}
	v, err := d.object.Find(ref[1:])
	if err != nil {
		return nil
	}
	return v
}

// Put keeps nothing: everything is there.
func (baseDocuments) Put(ast.Ref, ast.Value) {}
