package controller

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/policyset"
)

// maxProblems is how many problems a status lists; its schema has the same bound.
const maxProblems = 50

// Reasons of conditions.
const (
	ReasonCompiled     = "Compiled"     // Compiled is true
	ReasonNotCompiled  = "NotCompiled"  // problems of the object itself, or of no object
	ReasonNotValid     = "NotValid"     // the object itself is not valid
	ReasonWaits        = "Waits"        // another object is in the way
	ReasonNotRead      = "NotRead"      // the base policies could not be read
	ReasonTestsPassed  = "TestsPassed"  // TestsPassed is true
	ReasonTestsFailed  = "TestsFailed"  // tests of the object itself, or of no object
	ReasonChecksFailed = "ChecksFailed" // a built-in check does not hold
	ReasonTimedOut     = "TimedOut"     // there was not enough time; it will be tried again
	ReasonNotRun       = "NotRun"       // what does not compile is not tested
	ReasonPublished    = "Published"    // Published is true
	ReasonRollingOut   = "RollingOut"   // some live replica has not taken it over yet
	ReasonNotActive    = "NotActive"    // no replica can have taken over what is not active
	ReasonNoReplicas   = "NoReplicas"   // no replica has reported
	ReasonEnforced     = "Enforced"     // Ready is true
	ReasonLastGood     = "LastGood"     // Ready is true, and would not be after a restart
	ReasonExpressed    = "Expressed"    // ExpressedOnNodes is true
	ReasonInPart       = "InPart"       // some of it holds at admission alone
	ReasonServed       = "Served"       // ModesServed is true
	ReasonOtherMode    = "OtherMode"    // pods of its subjects run in a mode that it does not permit
	ReasonWritten      = "Written"      // InFloor is true
	ReasonNotWritten   = "NotWritten"   // the floor could not be written, or permits nothing
	ReasonNotInCEL     = "NotInCEL"     // the webhook alone can decide by it
)

// statusInput is everything that a status is computed from.
type statusInput struct {
	outcome  Outcome
	fault    fault // of the outcome's error
	replicas ReplicaCount
	bundles  *Bundles // nil if none are made
	floor    *Floor   // nil if none is kept
	now      time.Time
}

// condition is a condition without its times.
type condition struct {
	status          metav1.ConditionStatus
	reason, message string
}

func yes(reason, message string) condition { return condition{metav1.ConditionTrue, reason, message} }
func no(reason, message string) condition  { return condition{metav1.ConditionFalse, reason, message} }
func unknown(reason, message string) condition {
	return condition{metav1.ConditionUnknown, reason, message}
}

// status is the status of a generation of an object. It returns false as long as the newest attempt is not about that
// generation: the status that is there then tells by its own observedGeneration that it is about another.
func (p statusInput) status(key ObjectKey, generation int64, before v1alpha1.PolicyStatus) (v1alpha1.PolicyStatus, bool) {
	if attempted, ok := p.outcome.Generations[key]; !ok || attempted != generation {
		return before, false
	}
	active := p.isActive(key, generation)
	compiled, tested := p.fit(key, active)
	published := p.published(active)
	out := v1alpha1.PolicyStatus{
		ObservedGeneration: generation,
		Revision:           p.outcome.Revision,
		Replicas:           v1alpha1.ReplicaCounts{Live: p.replicas.Live},
	}
	if active { // else no replica decides by this generation, whatever it decides by
		out.Replicas.Current = p.replicas.Current
	}
	out.Replicas.Summary = fmt.Sprintf("%d/%d", out.Replicas.Current, out.Replicas.Live)
	for _, c := range []struct {
		kind string
		condition
	}{
		{v1alpha1.ConditionReady, p.ready(active, compiled, tested, published)},
		{v1alpha1.ConditionCompiled, compiled},
		{v1alpha1.ConditionTestsPassed, tested},
		{v1alpha1.ConditionPublished, published},
	} {
		out.Conditions = append(out.Conditions, p.condition(c.kind, c.condition, generation, before.Conditions))
	}
	return out, true
}

func (p statusInput) isActive(key ObjectKey, generation int64) bool {
	g, ok := p.outcome.Active[key]
	return ok && g == generation
}

// condition keeps the time of the last transition if the status stays the same.
func (p statusInput) condition(kind string, c condition, generation int64, before []metav1.Condition) metav1.Condition {
	out := metav1.Condition{
		Type: kind, Status: c.status, Reason: c.reason, Message: policyset.Clip(c.message, maxMessage),
		ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(p.now.Truncate(time.Second)),
	}
	for _, b := range before {
		if b.Type == kind && b.Status == c.status && !b.LastTransitionTime.IsZero() {
			out.LastTransitionTime = b.LastTransitionTime
		}
	}
	return out
}

// fit reports whether all policies compile and pass their tests with the object among them.
func (p statusInput) fit(key ObjectKey, active bool) (compiled, tested condition) {
	f := p.fault
	if own := f.own[named{key.Kind, key.Name}]; len(own) > 0 {
		problems := make([]string, len(own))
		for i, problem := range own {
			problems[i] = position(problem)
		}
		switch f.stage {
		case stageTests:
			return compiles(), no(ReasonTestsFailed, lines(problems))
		case stageAssemble:
			return no(ReasonNotValid, lines(problems)), notRun()
		default:
			return no(ReasonNotCompiled, lines(problems)), notRun()
		}
	}
	if active { // whatever became of a newer attempt, it was with this generation that policies were activated
		return compiles(), yes(ReasonTestsPassed, "all tests and the built-in checks pass")
	}
	switch f.stage {
	case stageRead:
		return unknown(ReasonNotRead, "waits: "+text(f.err)), notRun()
	case stageAssemble:
		return no(ReasonWaits, f.culprits("is not valid", "are not valid")), notRun()
	case stageCompile:
		if len(f.own) > 0 {
			return no(ReasonWaits, f.culprits("does not compile", "do not compile")), notRun()
		}
		return no(ReasonNotCompiled, "policies do not compile with it among them:\n"+lines(f.others)), notRun()
	case stageTests:
		if len(f.own) > 0 {
			return compiles(), no(ReasonWaits, f.culprits("does not pass its tests", "do not pass their tests"))
		}
		return compiles(), no(ReasonTestsFailed, "tests fail with it among the policies:\n"+lines(f.others))
	case stageTime:
		return compiles(), unknown(ReasonTimedOut, "it will be tried again: "+text(f.err))
	case stageChecks:
		return compiles(), no(ReasonChecksFailed, text(f.err))
	case stageActive: // not possible: what was attempted and did not fail is active
	}
	return unknown(ReasonNotRun, "nothing is known of it"), notRun()
}

func compiles() condition { return yes(ReasonCompiled, "all policies compile with it among them") }
func notRun() condition   { return unknown(ReasonNotRun, "what does not compile is not tested") }

// text is the error of an attempt.
func text(err error) string {
	if err == nil {
		return ""
	}
	return policyset.Clip(err.Error(), maxProblem)
}

// published reports whether each live replica has taken it over.
func (p statusInput) published(active bool) condition {
	c := p.replicas
	switch {
	case !active:
		return no(ReasonNotActive, "it is not active: see Compiled and TestsPassed")
	case c.Live == 0:
		return unknown(ReasonNoReplicas, "no replica of the webhook has reported")
	case c.Current >= c.Live:
		return yes(ReasonPublished, fmt.Sprintf("%d of %d replicas decide by it", c.Current, c.Live))
	case len(c.Refusing) > 0:
		return no(ReasonRollingOut, fmt.Sprintf("%d of %d replicas decide by it; refused by %s: see its log", c.Current, c.Live, few(c.Refusing)))
	}
	return no(ReasonRollingOut, fmt.Sprintf("%d of %d replicas decide by it; waiting for %s", c.Current, c.Live, few(c.Behind)))
}

// ready reports whether it is enforced everywhere, and else which of the other conditions says why not.
func (p statusInput) ready(active bool, compiled, tested, published condition) condition {
	if !active {
		for _, c := range []condition{compiled, tested} {
			if c.status != metav1.ConditionTrue {
				return no(c.reason, c.message)
			}
		}
		return no(ReasonNotActive, published.message)
	}
	if published.status != metav1.ConditionTrue {
		return condition{published.status, published.reason, published.message}
	}
	if compiled.status != metav1.ConditionTrue || tested.status != metav1.ConditionTrue {
		return yes(ReasonLastGood, "it decides on every replica, but not together with what changed since: see Compiled and TestsPassed")
	}
	return yes(ReasonEnforced, "it decides on every replica")
}

// pipePolicyStatus is the status of a PipePolicy. violations and modes, the condition ModesServed, are nil if nothing is known of them.
func (p statusInput) pipePolicyStatus(o *v1alpha1.PipePolicy, violations *int32, modes *condition) (v1alpha1.PipePolicyStatus, bool) {
	status, ok := p.status(keyOf(kindPipePolicy, o), o.Generation, o.Status.PolicyStatus)
	if !ok {
		return o.Status, false
	}
	if c := p.modes(o, modes); c != nil {
		status.Conditions = append(status.Conditions, *c)
	}
	status.Conditions = append(status.Conditions, p.inFloor(keyOf(kindPipePolicy, o), o.Generation, o.Status.Conditions)...)
	if p.bundles != nil {
		active := p.isActive(keyOf(kindPipePolicy, o), o.Generation)
		status.Conditions = append(status.Conditions, p.bundlesPublished(active, o.Generation, o.Status.Conditions),
			p.condition(v1alpha1.ConditionExpressedOnNodes, expressedOnNodes(o), o.Generation, o.Status.Conditions))
	}
	return v1alpha1.PipePolicyStatus{
		PolicyStatus: status, Violations: violations, Subjects: countSubjects(o.Spec.Subjects, p.now),
		Nodes: o.Status.Nodes, // package nodes writes it
	}, true
}

// policyModuleStatus is the status of a PolicyModule.
func (p statusInput) policyModuleStatus(o *v1alpha1.PolicyModule) (v1alpha1.PolicyModuleStatus, bool) {
	status, ok := p.status(keyOf(kindPolicyModule, o), o.Generation, o.Status.PolicyStatus)
	if !ok {
		return o.Status, false
	}
	status.Conditions = append(status.Conditions, p.inFloor(keyOf(kindPolicyModule, o), o.Generation, o.Status.Conditions)...)
	out := v1alpha1.PolicyModuleStatus{PolicyStatus: status}
	for i, problem := range p.fault.own[named{kindPolicyModule, o.Name}] {
		if i == maxProblems {
			break
		}
		problem.Message = policyset.Clip(problem.Message, maxProblem)
		out.Problems = append(out.Problems, problem)
	}
	return out, true
}
