package config

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/proxy/acl/profiles"
)

// Profile are the ready-made rules for one driver, written as its name or as its name and what differs from the driver's
// own manifests.
type Profile profiles.Options

// UnmarshalYAML takes a name, or a mapping with these keys and no others: the strictness of a decoder does not reach here.
func (p *Profile) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		return node.Decode(&p.Name)
	}
	if node.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: want the name of a profile, or a mapping with a name", node.Line)
	}
	fields := map[string]*string{
		"name": &p.Name, "namespace": &p.Namespace, "serviceAccount": &p.ServiceAccount, "container": &p.Container,
		"image": &p.Image, "kubeletDir": &p.KubeletDir,
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Value == "shares" && p.Shares == nil {
			if err := value.Decode(&p.Shares); err != nil {
				return fmt.Errorf("line %d: shares: want a list of texts", value.Line)
			}
			continue
		}
		field := fields[key.Value]
		if field == nil {
			return fmt.Errorf("line %d: field %s not found in type config.Profile", key.Line, key.Value)
		}
		if value.Kind != yaml.ScalarNode {
			return fmt.Errorf("line %d: %s: want a text", value.Line, key.Value)
		}
		*field = value.Value
		delete(fields, key.Value) // a key that stands twice is one that is not known
	}
	return nil
}
