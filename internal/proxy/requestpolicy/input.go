package requestpolicy

import (
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Circumstances are the input of a policy beside the call itself.
type Circumstances struct {
	// Shown is the caller in the form that policies are shown, if it was made before; nil if not.
	Caller caller.Caller
	Shown  *Shown
	// Sender is the party that waits for the decision, by any name: the decisions of one party hold up no other's.
	Sender string
	Named  bool      // the access list names the caller for this call: see acl.Decision
	Pipe   string    // without \\.\pipe\: csi-proxy-disk-v1
	Node   string    // name of this node; it may be empty
	Now    time.Time // when the call arrived; the record must be able to tell it
}

// Shown is a caller in the form that policies are shown: a connection makes it once and not for each of its calls. It may be
// used by many at once.
type Shown struct {
	term *ast.Term
	err  error
}

// Show returns a caller as policies are shown it. What of it cannot be shown is the fault of each call.
func Show(p caller.Caller) *Shown {
	var b builder
	term := b.peer(&p)
	return &Shown{term, b.err}
}

// types are shared by all evaluators: a request type has the same shape for each of them.
var types shapes

// Input returns what a policy is shown of a call. An error says which part cannot be shown; what it was is not said.
func Input(call *apiserver.Call, s *Circumstances) (ast.Value, error) {
	if call == nil || call.Operation == nil {
		return nil, errNoOperation
	}
	var b builder
	request := null
	if call.Request != nil { // else it is passed on unread
		m := call.Request.ProtoReflect()
		shape, err := types.of(call.Operation.Group, m)
		if err != nil {
			return nil, err
		}
		request = b.message(shape, m)
	}
	return b.input(request, s, call.Operation.Group, call.Version, call.Method, call.Operation.Name)
}

func (b *builder) input(request *ast.Term, s *Circumstances, group, version, method, operation string) (ast.Value, error) {
	peer := null
	switch {
	case s.Shown == nil:
		peer = b.peer(&s.Caller)
	case s.Shown.err != nil && b.err == nil:
		b.err = s.Shown.err
	default:
		peer = s.Shown.term
	}
	in := ast.NewObject(
		item{keyPeer, peer},
		item{keyNamed, ast.InternedTerm(s.Named)},
		item{keyPipe, b.text("pipe", s.Pipe)},
		item{keyGroup, b.text("group", group)},
		item{keyVersion, b.text("version", version)},
		item{keyMethod, b.text("method", method)},
		item{keyOperation, b.text("operation", operation)},
		item{keyRequest, request},
		item{keyNode, b.text("node", s.Node)},
		item{keyNow, b.text("now", when(s.Now))},
	)
	if b.err != nil {
		return nil, b.err
	}
	return in, nil
}
