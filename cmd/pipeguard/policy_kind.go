package main

import (
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// Policies judge objects at admission or calls on a node. The package of a module says which; one that is of neither may serve both.
var (
	ofNode      = regexp.MustCompile(`(?m)^package[ \t]+pipeguard\.node(_test|\.[\w.]+)?[ \t]*(#.*)?\r?$`)
	ofAdmission = regexp.MustCompile(`(?m)^package[ \t]+pipeguard\.admission(_test|\.[\w.]+)?[ \t]*(#.*)?\r?$`)
)

// byKind splits modules. Either part has no files if nothing is of its kind; a directory of neither kind is of admission.
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

// loadAllSources reads what a directory holds for admission and for nodes.
func loadAllSources(dir string, with additions, stdin io.Reader) ([]sources, error) {
	if dir == "" {
		s, err := loadSources(dir, with, stdin)
		return []sources{s}, err
	}
	modules, err := loadModules(dir)
	if err != nil {
		return nil, err
	}
	admission, node := byKind(modules)
	var all []sources
	if len(admission.Files) > 0 {
		s, err := loadSources(dir, with, stdin)
		if err != nil {
			return nil, err
		}
		if len(with.objects) == 0 { // nothing is added to the directory: its files are compiled with their tests
			s.modules = *s.modules.Base
		}
		all = append(all, s)
	}
	if len(node.Files) > 0 {
		switch {
		case len(all) > 0: // objects and parameters are the webhook's
		case len(with.objects) > 0:
			return nil, errors.New("--policies goes with policies of admission, and these are of nodes")
		case with.params != "":
			return nil, errors.New("--params goes with policies of admission, and these are of nodes, which have none: who is named is said by the access list, as input.named")
		}
		all = append(all, nodeSources(node))
	}
	return all, nil
}

// ofDecision is a module that says itself what is decided.
var ofDecision = regexp.MustCompile(`(?m)^(default[ \t]+)?decision\b`)

// isWhole says that modules are a request policy of their own, as the built-in one is. Nodes take additions alone.
func isWhole(m policy.Modules) bool {
	for _, text := range m.WithoutTests() {
		if ofNode.MatchString(text) && ofDecision.MatchString(text) {
			return true
		}
	}
	return false
}

// loadNodeSources reads what a directory adds to the built-in request policy, which it is alone if none is named. Unless only additions
// are taken, as a node takes them, the directory may hold a request policy of its own.
func loadNodeSources(dir string, additionsOnly bool) (sources, error) {
	if dir == "" {
		return besideBuiltIn(policy.Modules{}), nil
	}
	all, err := loadModules(dir)
	if err != nil {
		return sources{}, err
	}
	_, modules := byKind(all)
	switch {
	case len(modules.Files) == 0:
		return sources{}, fmt.Errorf("%s holds no policies of nodes: none is of package pipeguard.node", dir)
	case additionsOnly:
		return besideBuiltIn(modules), nil
	}
	return nodeSources(modules), nil
}

// nodeSources are what a directory adds to the built-in request policy, or a request policy of its own.
func nodeSources(modules policy.Modules) sources {
	if isWhole(modules) {
		return sources{modules: nodepolicy.Whole(modules.Files), options: nodepolicy.EngineOptions(policy.Options{}), isWholeNode: true, isOfNode: true}
	}
	return besideBuiltIn(modules)
}

// besideBuiltIn are modules that add to the built-in request policy.
func besideBuiltIn(modules policy.Modules) sources {
	s := sources{modules: modules, options: nodepolicy.EngineOptions(policy.Options{}), isBuiltIn: true, isOfNode: true}
	with, err := nodepolicy.Modules(modules.Files)
	if err != nil {
		s.problems = []policy.Problem{{Code: "addition", Message: err.Error()}}
		return s
	}
	s.modules = with
	return s
}
