package token

import (
	"context"
	"fmt"

	"google.golang.org/grpc/metadata"
)

// Guard checks the tokens of one pipe's callers. The zero value refuses every call.
type Guard struct {
	verifier *Verifier
	pipe     string
	mode     Mode
}

// Guard returns the guard of a pipe, named as in disk-v1. A nil Verifier guards pipes whose mode is Off.
func (v *Verifier) Guard(pipe string, mode Mode) (Guard, error) {
	switch {
	case !mode.IsValid():
		return Guard{}, fmt.Errorf("pipe %s: tokens are %s, %s or %s, and not %q", pipe, Off, IfPresent, Required, mode)
	case v == nil && mode != Off:
		return Guard{}, fmt.Errorf("pipe %s: tokens are %s, and nothing says how to verify them", pipe, mode)
	}
	return Guard{verifier: v, pipe: pipe, mode: mode}, nil
}

// Mode returns the pipe's.
func (g Guard) Mode() Mode { return g.mode }

// Check returns the identity that the token of a call was made for, before any access check. The metadata is that of the
// incoming call. An error is a *Refusal: the call must not be served, whatever else allows it; CodeOf
// says which code the caller gets.
//
// Without an error the identity is proven to be that of the caller's own pod, or it is the zero value: then no token came,
// or it counts for nothing (see Result), and no rule that asks for a token applies.
func (g Guard) Check(ctx context.Context, md metadata.MD, caller Facts) (Identity, Result, error) {
	if g.mode == Off {
		return Identity{}, Result{}, nil
	}
	if g.verifier == nil || !g.mode.IsValid() {
		return Identity{}, Result{}, refuse(Unconfigured, "nothing says how to verify it")
	}
	id, result, refusal := g.check(ctx, md, caller)
	g.verifier.metrics.checked(g.pipe, result, refusal)
	if refusal != nil {
		return Identity{}, result, refusal
	}
	return id, result, nil
}

func (g Guard) check(ctx context.Context, md metadata.MD, caller Facts) (Identity, Result, *Refusal) {
	text, present, refusal := fromMetadata(md)
	switch {
	case refusal != nil:
		return Identity{}, Result{Present: true}, refusal
	case !present && g.mode == Required:
		return Identity{}, Result{}, refuse(Missing, "pipe %s serves callers with a token alone, and none came", g.pipe)
	case !present:
		return Identity{}, Result{}, nil
	case (caller.Pod.UID == "" || caller.Process.PID == 0) && g.mode == Required:
		return Identity{}, Result{Present: true}, refuse(Unbound, "the pod of the caller is not known, so the token may belong to another pod")
	case caller.Pod.UID == "" || caller.Process.PID == 0:
		return Identity{}, Result{Present: true, Unbound: true}, nil
	}
	return g.verifier.verify(ctx, text, caller)
}

// Strip returns the metadata without what Check has read, for calls that are passed on: the server behind a pipe must not
// be given a token that was made for this proxy. On pipes whose mode is Off the header is not this proxy's, and stays.
func (g Guard) Strip(md metadata.MD) metadata.MD {
	if g.mode == Off || len(md.Get(header)) == 0 {
		return md
	}
	md = md.Copy()
	md.Delete(header)
	return md
}
