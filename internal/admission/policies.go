package admission

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pipeguard/pipeguard/internal/policy"
	builtin "github.com/pipeguard/pipeguard/policies"
)

// Policies are what decides together beside the Rego.
type Policies struct {
	Parameters Parameters
	// PipePolicies of the API, by name. Those of the parameters go beside them as "parameters/" and their name.
	PipePolicies map[string]PipePolicy
	// ModuleParameters are for Rego alone, by the name of the PolicyModule that they belong to.
	ModuleParameters map[string]any
}

// gone are documents that policies could read once, or could be expected to.
var gone = map[string]string{
	"pipeguard.policies":                      inAccess,
	"pipeguard.parameters.pipePolicies":       inAccess,
	"pipeguard.parameters.hostProcessAllowed": inContainer,
	"pipeguard.parameters.equalPowerPipes":    inEntry,
	"pipeguard.parameters.equalPowerPaths":    inEntry,
	"pipeguard.parameters.guardedHostPaths":   "how a path stands to a guarded host path is in the place and hostPath of its entry, see input.mounts[_].place",
}

// closed are documents of which no policy may take more, or other names, than it spells out.
var closed = []string{"pipeguard.parameters"}

const inAccess = "what the PipePolicies say of a container that mounts a pipe is in the access of the mount, see input.mounts[_].access"

const inContainer = "what a HostProcess container is permitted is in its access, see input.containers[_].access"

const inEntry = "what a path gives is in the equalPower of its entry, see input.mounts[_].equalPower"

// parameterPolicy is the name of a PipePolicy from the parameters. No name in the API has a slash.
func parameterPolicy(name string) string { return "parameters/" + name }

// Bind adds to files what they are to decide with: data, the schema of their input, a *Scope as companion, and the checks that
// every policy must hold. It reports every fault of p at once.
func (p Policies) Bind(files policy.Modules) (policy.Modules, error) {
	if err := p.Validate(); err != nil {
		return policy.Modules{}, err
	}
	pipes := p.pipePolicies()
	scope, err := p.scope(pipes)
	if err != nil {
		return policy.Modules{}, err
	}
	checks, err := p.checks(scope)
	if err != nil {
		return policy.Modules{}, err
	}
	files.Data = p.data(pipes)
	files.Companion = scope
	files.InputSchema = builtin.InputSchema()
	files.Gone, files.Closed = gone, closed
	files.Checks = slices.Concat(files.Checks, checks)
	return files, nil
}

// Validate reports every fault of p.
func (p Policies) Validate() error {
	var f faults
	p.Parameters.check(&f)
	for _, name := range sortedKeys(p.PipePolicies) {
		p.PipePolicies[name].check(&f, "PipePolicy "+quote(name, maxSubdomain))
	}
	return errors.Join(f...)
}

// pipePolicies are those of the API and those of the parameters.
func (p Policies) pipePolicies() map[string]PipePolicy {
	all := make(map[string]PipePolicy, len(p.PipePolicies)+len(p.Parameters.PipePolicies))
	for name, own := range p.PipePolicies {
		all[name] = own.forAdmission()
	}
	for name, own := range p.Parameters.PipePolicies {
		all[parameterPolicy(name)] = own.forAdmission()
	}
	return all
}

// Permissions are everything that governs pipes or permits something of the host, by the name that refusals give it: the PipePolicies of the API, those of the parameters,
// and hostProcessAllowed as a policy without pipes. Each has its defaults, and nothing of what is for nodes alone.
func (p Policies) Permissions() map[string]PipePolicy {
	all := p.pipePolicies()
	if len(p.Parameters.HostProcessAllowed) > 0 {
		all[hostProcessParameter] = p.Parameters.hostProcessPolicy()
	}
	return all
}

// StrictestAction is that on a path that may lead to any guarded pipe: the strictest of the parameters' and of those of the PipePolicies that guard pipes.
func (p Policies) StrictestAction() Action { return p.strictestAction(p.pipePolicies()) }

func (p Policies) strictestAction(pipes map[string]PipePolicy) Action {
	strictest := p.Parameters.Action
	for _, own := range pipes {
		if len(own.Pipes) > 0 {
			strictest = stricter(strictest, own.Action)
		}
	}
	return strictest
}

// data is the document that policies see as data. What a PipePolicy says of an object is in the input.
func (p Policies) data(pipes map[string]PipePolicy) map[string]any {
	modules := maps.Clone(p.ModuleParameters)
	if modules == nil {
		modules = map[string]any{}
	}
	parameters := p.Parameters.data()
	parameters["strictestAction"] = string(p.strictestAction(pipes))
	return map[string]any{"pipeguard": map[string]any{
		"parameters": parameters,
		"modules":    modules,
		// What the Scope was made from. No rule needs it, but the revision, which is the hash of files and data, must change with everything that
		// changes a decision.
		"scope": map[string]any{
			"policies":           sum(pipes),
			"hostProcessAllowed": subjectsData(p.Parameters.HostProcessAllowed),
			"equalPowerPipes":    anys(p.Parameters.EqualPowerPipes),
			"equalPowerPaths":    anys(p.Parameters.EqualPowerPaths),
			"guardedHostPaths":   anys(p.Parameters.GuardedHostPaths),
		},
	}}
}

// sum is a hash of PipePolicies.
func sum(pipes map[string]PipePolicy) string {
	text, err := json.Marshal(pipes)
	if err != nil {
		panic(fmt.Errorf("encode PipePolicies: %w", err)) // they consist of texts and of times that were checked
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])
}
