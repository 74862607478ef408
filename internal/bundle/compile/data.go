package compile

import (
	"fmt"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/bundle/rules"
)

// data is what Rego on a node reads: the policies by name, under data.pipeguard.policies as at admission, and who is
// named for operations that the default policy refuses to everybody else.
func data(d rules.Document, named map[string]any) (map[string]any, error) {
	policies := map[string]any{}
	for _, p := range d.Policies {
		value, err := plain(p)
		if err != nil {
			return nil, fmt.Errorf("data of policy %s: %w", p.Name, err)
		}
		policies[p.Name] = value
	}
	value, err := plain(named)
	if err != nil {
		return nil, fmt.Errorf("who is named: %w", err)
	}
	all, ok := value.(map[string]any)
	if !ok {
		all = map[string]any{}
	}
	for _, p := range d.Policies {
		if err := grant(all, p); err != nil {
			return nil, fmt.Errorf("who is named: policy %s: %w", p.Name, err)
		}
	}
	return map[string]any{"pipeguard": map[string]any{
		"policies":   policies,
		"parameters": map[string]any{"node": map[string]any{"named": all}},
	}}, nil
}

// grant names the subjects of a policy for the methods that it spells out, on the groups that it spells out: an operator
// who writes FormatVolume beside a service account means it, and one who writes nothing has not thought of it. The access
// list still has to allow the call, for images, paths and tokens too. Ends are repeated here: another policy may go on to allow
// the same caller everything on a pipe.
func grant(all map[string]any, p rules.Policy) error {
	for _, pattern := range p.Pipes {
		group, ok := groupOf(pattern)
		if !ok {
			continue
		}
		for _, method := range p.Methods {
			for _, s := range p.Subjects {
				named := s.ServiceAccounts
				if len(named) == 0 && len(s.Containers) > 0 {
					named = []string{"*"} // any, in the words of the default policy, which then wants containers
				}
				for _, account := range named {
					accounts, err := child(all, group, method, "pods", s.Namespace)
					if err != nil {
						return err
					}
					entries, ok := accounts[account].([]any)
					if accounts[account] != nil && !ok {
						return fmt.Errorf("%s/%s: want a list", s.Namespace, account)
					}
					entry := map[string]any{}
					if len(s.Containers) > 0 {
						containers := make([]any, len(s.Containers))
						for i, c := range s.Containers {
							containers[i] = c
						}
						entry["containers"] = containers
					}
					if !s.ExpiresAt.IsZero() {
						entry["until"] = s.ExpiresAt.UTC().Format(time.RFC3339)
					}
					accounts[account] = append(entries, entry)
				}
			}
		}
	}
	return nil
}

// child walks down a tree of objects and makes those that are missing.
func child(at map[string]any, path ...string) (map[string]any, error) {
	for _, key := range path {
		if at[key] == nil {
			at[key] = map[string]any{}
		}
		next, ok := at[key].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%s: want an object", key)
		}
		at = next
	}
	return at, nil
}

// groupOf is the group of the node API that a pattern spells out: disk of csi-proxy-disk-v1 and of csi-proxy-disk-*.
func groupOf(pattern string) (string, bool) {
	rest, ok := strings.CutPrefix(pattern, "csi-proxy-")
	if !ok {
		return "", false
	}
	group, _, ok := strings.Cut(rest, "-")
	return group, ok && group != "" && !strings.ContainsAny(group, "*.{}_")
}
