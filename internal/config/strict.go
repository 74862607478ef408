package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// checkText refuses what YAML allows and an access list should not: values that are empty, which would read as if the
// key were not there (a caller whose "user:" a template left empty would be any user), and anchors, aliases and merges,
// by which a file says in one place what holds in another.
func (s source) checkText() error { return errors.Join(s.walk(s.root, "")...) }

// walk returns the faults of a node and of what is in it; field is the node's place in words.
func (s source) walk(node *yaml.Node, field string) (faults []error) {
	add := func(at *yaml.Node, problem string) {
		faults = append(faults, fmt.Errorf("%s:%d:%d: %s: %s", s.file, at.Line, at.Column, field, problem))
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		add(node, "anchors and aliases are not taken: write the value where it holds")
		return faults // what an alias stands for may hold the alias
	case node.Kind == yaml.ScalarNode && field != "" && (node.Value == "" || node.Tag == "!!null"):
		add(node, "has no value: give it one or remove it")
	}
	for i, child := range node.Content {
		switch {
		case node.Kind == yaml.SequenceNode:
			faults = append(faults, s.walk(child, fmt.Sprintf("%s[%d]", field, i))...)
		case node.Kind == yaml.DocumentNode:
			faults = append(faults, s.walk(child, field)...)
		case i%2 == 0: // a key
			if child.Tag == "!!merge" {
				add(child, "merges (<<) are not taken: write the keys where they hold")
			}
		case field == "":
			faults = append(faults, s.walk(child, node.Content[i-1].Value)...)
		default:
			faults = append(faults, s.walk(child, field+"."+node.Content[i-1].Value)...)
		}
	}
	return faults
}
