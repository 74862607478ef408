package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/request"
	"github.com/pipeguard/pipeguard/policies/node"
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
		params := with.params
		switch {
		case len(all) > 0: // they are the webhook's
			params = ""
		case len(with.objects) > 0:
			return nil, errors.New("--policies goes with policies of admission, and these are of nodes")
		}
		s, err := nodeSources(node, params)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
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

// nodeSources are what a directory adds to the built-in request policy, or a request policy of its own, with the parameters
// of a file, or none.
func nodeSources(modules policy.Modules, params string) (sources, error) {
	var data map[string]any
	if params != "" {
		text, err := os.ReadFile(filepath.Clean(params))
		if err != nil {
			return sources{}, err
		}
		if data, err = request.ParseParameters(text); err != nil {
			return sources{}, fmt.Errorf("parameters %s: %w", params, err)
		}
	}
	if isWhole(modules) {
		return sources{modules: policy.Modules{Files: modules.Files, Data: data, InputSchema: node.InputSchema()}, options: request.Options(policy.Options{}), isWholeNode: true, isOfNode: true}, nil
	}
	return besideBuiltIn(modules, data), nil
}

// besideBuiltIn are modules that add to the built-in request policy, over its parameters.
func besideBuiltIn(modules policy.Modules, data map[string]any) sources {
	s := sources{modules: modules, options: request.Options(policy.Options{}), isBuiltIn: true, isOfNode: true}
	with, err := request.Modules(modules.Files, data)
	if err != nil {
		s.problems = []policy.Problem{{Code: "addition", Message: err.Error()}}
		return s
	}
	s.modules = with
	return s
}
