package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// source knows where in a file a field stands.
type source struct {
	file   string
	root   *yaml.Node
	digest Digest
}

// locate makes one error of all faults, one a line, each with the line and column of its field or of the nearest
// thing around it that is there.
func (s source) locate(faults acl.Faults) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = errors.New(s.line(f))
	}
	return errors.Join(errs...)
}

func (s source) line(f acl.Fault) string {
	node := s.find(f.Field)
	return fmt.Sprintf("%s:%d:%d: %s: %s", s.file, max(node.Line, 1), max(node.Column, 1), f.Field, f.Problem)
}

// find follows a path such as acl.rules[0].name as far as it goes.
func (s source) find(field string) *yaml.Node {
	node, _ := s.follow(field)
	return node
}

// exact follows such a path to its end. It returns nil if nothing is there.
func (s source) exact(field string) *yaml.Node {
	if node, ok := s.follow(field); ok {
		return node
	}
	return nil
}

// follow also says whether it came to the end.
func (s source) follow(field string) (node *yaml.Node, ok bool) {
	node = s.root
	if len(node.Content) > 0 {
		node = node.Content[0]
	}
	for _, step := range strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '[' || r == ']' }) {
		next := child(node, step)
		if next == nil {
			return node, false
		}
		node = next
	}
	return node, true
}

func child(node *yaml.Node, step string) *yaml.Node {
	switch node.Kind {
	case yaml.AliasNode:
		return child(node.Alias, step)
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return node.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i < len(node.Content) {
			return node.Content[i]
		}
	}
	return nil
}
