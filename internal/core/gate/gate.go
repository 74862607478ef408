// Package gate is the order of a call: which checks must pass before an operation runs, in which order, and that the records show how each call ended.
// It trusts the answers of what it asks, and keeps the order itself.
package gate

import (
	"context"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// Session is one call and its caller.
type Session interface {
	// Authenticate checks the credentials that the caller has sent. The context that it returns is for later steps, without those credentials.
	Authenticate(ctx context.Context) (context.Context, error)
	// Question is the call as an access list is asked about it, with its caller as far as is proven now.
	Question() access.Call
	// Rules are the rules in force for it now.
	Rules() Rules
	// Charge counts the call against the limits of its caller, and returns an error if it is beyond them.
	Charge(d access.Decision) error
	// Enter waits until nothing else acts on the same objects, and says whether it had to. leave ends that.
	Enter(ctx context.Context) (leave func(), waited bool, err error)
	// Alive returns an error if the caller's process has ended.
	Alive() error
}

// Rules are the access list, the roles and the request policy. Roles and RequestPolicy may be nil, and are not asked then.
type Rules struct {
	List          List
	Roles         Roles
	RequestPolicy RequestPolicy
}

// List is an access list. *access.List is one.
type List interface {
	Decide(c access.Call) access.Decision
}

// Roles may allow what the list does not. They permit nothing beside the call, and name no caller.
type Roles interface {
	// Grant returns what records name in place of a rule, and why; if it does not, why not, which is added to the reason of the list.
	Grant(ctx context.Context) (rule, reason string, ok bool)
}

// RequestPolicy may refuse what is allowed.
type RequestPolicy interface {
	// EvaluatePolicy returns nil if it does not refuse the call.
	EvaluatePolicy(ctx context.Context) *Refusal
}

// Refusal is why a call is not allowed.
type Refusal struct {
	Reason string
	// MayChange says that the same call may be allowed later.
	MayChange bool
	// IsGone says that the caller's process has ended. Its calls pass in no mode.
	IsGone bool
}

// Recorder writes the records of the call.
type Recorder interface {
	// Open begins them.
	Open()
	// RecordDecision is told each decision of the list and the roles; the last one counts.
	RecordDecision(d access.Decision, byRoles bool)
	// Deny is told the refusal that counts, and returns what the caller is told.
	Deny(r Refusal) error
	// WouldDeny is told a refusal that the mode of the pipe lets pass.
	WouldDeny(r Refusal)
	// RecordIntent makes the intent durable. The operation runs only if it is.
	RecordIntent(ctx context.Context) error
	// End is told how the call ended, writes its last record, and returns what the caller is told.
	End(ctx context.Context, err error) error
	// RecordPanic is End for a panic. It is called by the function that has caught it.
	RecordPanic(v any) error
}

// Pass runs act if the caller is authenticated, the access list or the roles allow the call, the request policy does not refuse it, nothing else acts on the same
// objects, all of that still holds after the wait, the caller's process is alive, and the intent is durable. However the call ends, its records have one end.
func Pass(ctx context.Context, s Session, l Recorder, act func(ctx context.Context) error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = l.RecordPanic(v)
		}
	}()
	l.Open()
	return l.End(ctx, pass(ctx, s, l, act))
}

func pass(ctx context.Context, s Session, l Recorder, act func(ctx context.Context) error) error {
	inner, err := admit(ctx, s, l, true)
	if err != nil {
		return err
	}
	leave, waited, err := s.Enter(inner)
	if err != nil {
		return err
	}
	defer leave()
	if waited { // what allowed it may have ended
		if inner, err = admit(ctx, s, l, false); err != nil {
			return err
		}
	}
	if err := s.Alive(); err != nil {
		return l.Deny(Refusal{Reason: "the caller's identity can no longer be verified: " + err.Error(), IsGone: true})
	}
	if err := l.RecordIntent(inner); err != nil {
		return err
	}
	return act(inner)
}

// admit authenticates the caller, and then authorizes its call.
func admit(ctx context.Context, s Session, l Recorder, isFirst bool) (context.Context, error) {
	inner, err := s.Authenticate(ctx)
	if err != nil {
		return nil, err
	}
	return inner, authorize(inner, s, l, isFirst)
}

// Authorize asks the list, the roles and the request policy about a call that was admitted and is still running.
func Authorize(ctx context.Context, s Session, l Recorder) error { return authorize(ctx, s, l, false) }

// authorize asks the list, the roles about what the list does not allow, and the request policy about what either allows. A call that passes only because its pipe is in
// mode LogOnly counts as refused, and the request policy is not asked about it. A call is charged once, whether or not it is allowed.
func authorize(ctx context.Context, s Session, l Recorder, charges bool) error {
	rules := s.Rules()
	d, byRoles := rules.List.Decide(s.Question()), false
	if d.Effect != access.Allow && rules.Roles != nil {
		rule, reason, ok := rules.Roles.Grant(ctx)
		if byRoles = ok; ok {
			d = access.Decision{Allowed: true, Effect: access.Allow, Mode: d.Mode, Rule: rule, Reason: reason, Limits: d.Limits}
		} else {
			d.Reason += reason
		}
	}
	l.RecordDecision(d, byRoles)
	if charges {
		if err := s.Charge(d); err != nil {
			return err
		}
	}
	if d.Effect != access.Allow {
		return refuse(l, Refusal{Reason: d.Reason}, d.Allowed)
	}
	if rules.RequestPolicy == nil {
		return nil
	}
	if refusal := rules.RequestPolicy.EvaluatePolicy(ctx); refusal != nil {
		return refuse(l, *refusal, d.Mode == access.LogOnly)
	}
	return nil
}

// refuse refuses, unless the refusal is to be recorded only.
func refuse(l Recorder, r Refusal, recordOnly bool) error {
	if recordOnly {
		l.WouldDeny(r)
		return nil
	}
	return l.Deny(r)
}
