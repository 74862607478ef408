package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// driverNamespace is where the checks' driver lives; which it is does not matter, as the checks bring their own data.
const driverNamespace = "kube-system"

// checkTime is when the checks take place, so that they have the same outcome at any time.
var checkTime = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

// checks are the invariants that every policy must hold before it is activated, whatever its author and its own
// tests say. Some are about p itself, of which scope is the scope; the others bring policies of their own.
func (p Policies) checks(scope *Scope) ([]policy.Check, error) {
	var c checkList
	own := situation{scope: scope}
	c.denied("the directory of all pipes is refused", own.in(canaryNamespace, samplePod("canary", pipeRoot)))
	c.denied("a PersistentVolume that leads to it is refused", own.in("", sampleVolume("canary", pipeRoot)))
	if scope.canary != "" {
		c.denied("a guarded pipe is refused where nobody is allowed", own.in(canaryNamespace, samplePod("canary", pipeRoot+scope.canary)))
		c.denied("an evasive spelling of it is refused", own.in(canaryNamespace, samplePod("canary", otherSpelling(scope.canary))))
		c.denied("a guarded pipe that is declared and not mounted is refused",
			own.in(canaryNamespace, samplePod("canary", pipeRoot+scope.canary).unmounted()))
		c.denied("a guarded pipe in the template of a Deployment is refused", own.in(canaryNamespace, sampleDeployment("canary", pipeRoot+scope.canary)))
		c.denied("a PersistentVolume that leads to a guarded pipe is refused", own.in("", sampleVolume("canary", pipeRoot+scope.canary)))
	}
	if err := p.namespaceChecks(&c); err != nil {
		return nil, err
	}
	if err := p.policyChecks(&c); err != nil {
		return nil, err
	}
	return c, nil
}

// namespaceChecks are about pipes that no PipePolicy governs.
func (p Policies) namespaceChecks(c *checkList) error {
	allowing := p.withoutPolicies()
	allowing.AllowedNamespaces = map[string]Subjects{driverNamespace: {}}
	s, err := Policies{Parameters: allowing}.situation()
	if err != nil {
		return err
	}
	driver := samplePod("driver", pipeRoot+s.scope.canary)
	c.denied("the directory of all pipes is refused even in an allowed namespace", s.in(driverNamespace, samplePod("canary", pipeRoot)))
	c.allowed("a driver in an allowed namespace is admitted", s.in(driverNamespace, driver))
	c.denied("the same driver in another namespace is refused", s.in(canaryNamespace, driver))

	s.data = map[string]any{}
	c.denied("without data a guarded pipe is refused", s.in(driverNamespace, driver))
	s.data = map[string]any{"pipeguard": map[string]any{"parameters": "not a mapping"}}
	c.denied("with malformed data a guarded pipe is refused", s.in(driverNamespace, driver))
	return nil
}

// policyChecks are about a pipe that one PipePolicy governs.
func (p Policies) policyChecks(c *checkList) error {
	parameters := p.withoutPolicies()
	ungoverned, err := Policies{Parameters: parameters}.situation()
	if err != nil {
		return err
	}
	pipe := ungoverned.scope.canary
	driver := samplePod("driver", pipeRoot+pipe)
	parameters.AllowedNamespaces = map[string]Subjects{"allowed": {}}
	governed := func(until time.Time) (situation, error) {
		return Policies{Parameters: parameters, PipePolicies: map[string]PipePolicy{"check": {
			Pipes: []string{pipe}, Action: ActionDeny, Requirement: AllowedNamespace,
			Subjects: []access.Subject{{
				Name: "driver", Namespace: driverNamespace, ServiceAccounts: []string{"default"}, Containers: []string{"driver"},
				Images: []string{"example.com/driver"}, Owner: "checks", Reason: "to check policies", ExpiresAt: until,
			}},
		}}}.situation()
	}
	open, err := governed(checkTime.AddDate(1, 0, 0))
	if err != nil {
		return err
	}
	c.allowed("the subject of a PipePolicy is admitted", open.in(driverNamespace, driver))
	c.denied("in another namespace it is refused", open.in(canaryNamespace, driver))
	c.denied("in a namespace that only the parameters allow it is refused", open.in("allowed", driver))
	c.denied("another container beside it is refused", open.in(driverNamespace, samplePod("other", pipeRoot+pipe)))
	c.denied("a PersistentVolume is refused although a PipePolicy has subjects", open.in("", sampleVolume("canary", pipeRoot+pipe)))
	ended, err := governed(checkTime)
	if err != nil {
		return err
	}
	c.denied("a subject whose permission has ended is refused", ended.in(driverNamespace, driver))
	return nil
}

// withoutPolicies are p's guarded pipes, and else what is built in.
func (p Policies) withoutPolicies() Parameters {
	d := DefaultParameters()
	d.GuardedPipes = p.Parameters.GuardedPipes
	return d
}

// situation is data and the scope that belongs to it.
type situation struct {
	scope *Scope
	data  map[string]any // nil for that of the policies that are checked
}

func (p Policies) situation() (situation, error) {
	pipes := p.pipePolicies()
	scope, err := p.scope(pipes)
	if err != nil {
		return situation{}, err
	}
	return situation{scope, p.data(pipes)}, nil
}

// in extracts the input of a sample that is created in a namespace, the same way as for a request.
func (s situation) in(namespace string, of sample) policy.Check {
	a := jsonscan.Allow(heavyReview)
	obj := must(readObject(must(json.Marshal(of.object)), of.kind, a))
	e := must(extract(s.scope, &obj, a))
	req := &admissionv1.AdmissionRequest{Kind: of.kind, Namespace: namespace, Operation: admissionv1.Create}
	in := must(s.scope.input(req, &obj, &e, nil, checkTime, a))
	return policy.Check{Input: in.value(nil, everyField), Data: s.data}
}

// must panics with an error about a sample, which consists of the same constants in every process.
func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Errorf("make the input of a check: %w", err))
	}
	return v
}

type checkList []policy.Check

func (c *checkList) denied(name string, check policy.Check) { c.add(name, check, wantDenied) }
func (c *checkList) allowed(name string, check policy.Check) {
	check.OfBase = true
	c.add(name, check, wantAllowed)
}

func (c *checkList) add(name string, check policy.Check, want func(policy.Decision) error) {
	check.Name, check.Want = "built-in: "+name, want
	*c = append(*c, check)
}

func wantDenied(d policy.Decision) error {
	if d.Allowed && len(denials(d)) == 0 {
		return errors.New("it was admitted")
	}
	return nil
}

func wantAllowed(d policy.Decision) error {
	if denied := denials(d); len(denied) > 0 {
		return fmt.Errorf("it was refused with %s at %q", code(denied[0]), denied[0].Field)
	}
	if !d.Allowed {
		return errors.New("it was refused without a finding")
	}
	return nil
}
