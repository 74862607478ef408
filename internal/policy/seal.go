package policy

import (
	"errors"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// reaching are the functions of OPA that connect, resolve names or show the process.
var reaching = []string{ast.HTTPSend.Name, ast.NetLookupIPAddr.Name, ast.OPARuntime.Name}

var errSealed = errors.New("this process evaluates policies that may not reach out")

// SealProcess makes the functions of OPA that reach out of the process fail, for the whole process and for ever.
//
// No module that passed an Engine's compiler can call them; this is the second barrier, against a way round the first.
// A program calls it before it makes an Engine: it is not safe while policies are evaluated.
func SealProcess() {
	for _, name := range reaching {
		topdown.RegisterBuiltinFunc(name, func(topdown.BuiltinContext, []*ast.Term, func(*ast.Term) error) error {
			return errSealed
		})
	}
}
