package policysource

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Policies judge objects at admission or calls on a node. The package of a module says which; a module of another package may serve both.
var (
	ofNode      = regexp.MustCompile(`(?m)^package[ \t]+pipeguard\.node(_test|\.[\w.]+)?[ \t]*(#.*)?\r?$`)
	ofAdmission = regexp.MustCompile(`(?m)^package[ \t]+pipeguard\.admission(_test|\.[\w.]+)?[ \t]*(#.*)?\r?$`)
)

// byKind splits modules by kind. A directory without modules of either kind counts as admission.
func byKind(m policy.Modules) (admission, node policy.Modules) {
	hasNode, hasAdmission := false, false
	for _, text := range m.Files {
		hasNode = hasNode || ofNode.MatchString(text)
		hasAdmission = hasAdmission || ofAdmission.MatchString(text)
	}
	admission, node = m, m
	admission.Files, node.Files = map[string]string{}, map[string]string{}
	for name, text := range m.Files {
		if !ofNode.MatchString(text) && (hasAdmission || !hasNode) {
			admission.Files[name] = text
		}
		if !ofAdmission.MatchString(text) && hasNode {
			node.Files[name] = text
		}
	}
	return admission, node
}

// LoadAll reads what a directory holds for admission and for nodes.
func LoadAll(dir string, with Additions, stdin io.Reader) ([]Sources, error) {
	if dir == "" {
		s, err := Load(dir, with, stdin)
		return []Sources{s}, err
	}
	modules, err := LoadModules(dir)
	if err != nil {
		return nil, err
	}
	admission, node := byKind(modules)
	var all []Sources
	if len(admission.Files) > 0 {
		s, err := Load(dir, with, stdin)
		if err != nil {
			return nil, err
		}
		if len(with.Objects) == 0 { // nothing is added to the directory: its files are compiled with their tests
			s.Modules = *s.Modules.Base
		}
		all = append(all, s)
	}
	if len(node.Files) > 0 {
		switch {
		case len(all) > 0: // objects and parameters are the webhook's
		case len(with.Objects) > 0:
			return nil, errors.New("--policies goes with policies of admission, and these are of nodes")
		case with.Params != "":
			return nil, errors.New("--params goes with policies of admission, and these are of nodes, which have none: who is named is said by the access list, as input.named")
		}
		all = append(all, nodeSources(node))
	}
	return all, nil
}

// ofDecision matches a module that defines the decision.
var ofDecision = regexp.MustCompile(`(?m)^(default[ \t]+)?decision\b`)

// isWhole says whether modules are a whole request policy, as the built-in one is. Nodes accept only additions.
func isWhole(m policy.Modules) bool {
	for _, text := range m.WithoutTests() {
		if ofNode.MatchString(text) && ofDecision.MatchString(text) {
			return true
		}
	}
	return false
}

// LoadNode reads modules from a directory and adds them to the built-in request policy, which is all there is if none is named. A directory may
// also hold a whole request policy, unless only additions are allowed, as on a node.
func LoadNode(dir string, additionsOnly bool) (Sources, error) {
	if dir == "" {
		return BesideBuiltIn(policy.Modules{}), nil
	}
	all, err := LoadModules(dir)
	if err != nil {
		return Sources{}, err
	}
	_, modules := byKind(all)
	switch {
	case len(modules.Files) == 0:
		return Sources{}, fmt.Errorf("%s holds no policies of nodes: no module has package pipeguard.node", dir)
	case additionsOnly:
		return BesideBuiltIn(modules), nil
	}
	return nodeSources(modules), nil
}

// nodeSources takes modules as additions to the built-in request policy, or as a whole one.
func nodeSources(modules policy.Modules) Sources {
	if isWhole(modules) {
		return Sources{Modules: nodepolicy.Whole(modules.Files), Options: nodepolicy.EngineOptions(policy.Options{}), IsWholeNode: true, IsOfNode: true}
	}
	return BesideBuiltIn(modules)
}

// BesideBuiltIn adds modules to the built-in request policy.
func BesideBuiltIn(modules policy.Modules) Sources {
	s := Sources{Modules: modules, Options: nodepolicy.EngineOptions(policy.Options{}), IsBuiltIn: true, IsOfNode: true}
	with, err := nodepolicy.Modules(modules.Files)
	if err != nil {
		s.Problems = []policy.Problem{{Code: "addition", Message: err.Error()}}
		return s
	}
	s.Modules = with
	return s
}
