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
	if node.Kind != yaml.MappingNode {
		return node.Decode(&p.Name)
	}
	fields := map[string]any{
		"name": &p.Name, "namespace": &p.Namespace, "serviceAccount": &p.ServiceAccount, "container": &p.Container,
		"image": &p.Image, "kubeletDir": &p.KubeletDir, "shares": &p.Shares,
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		field := fields[key.Value]
		if field == nil { // worded as the decoder words it
			return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: field %s not found in type config.Profile", key.Line, key.Value)}}
		}
		if err := value.Decode(field); err != nil {
			return err
		}
		delete(fields, key.Value) // a key that stands twice is one that is not known
	}
	return nil
}
