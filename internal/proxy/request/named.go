package request

import (
	"slices"
	"strings"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// NamedBy are the callers that rules of an access list name for the operations that they spell out, in the form of the
// parameter "named": who writes FormatVolume beside a service account means it, and who writes "*" has not thought of it.
// Named are pods by namespace and service account, or namespace and container where the account does not matter, and processes of the node by account and program. The access list still
// has to allow the call, so that images, paths and tokens count although they are not repeated here.
func NamedBy(spec acl.Spec) map[string]any {
	named := tree{}
	for _, r := range spec.Rules {
		for _, group := range groupsOf(r.Pipes) {
			for _, operation := range r.Operations {
				if operation == "*" || strings.HasPrefix(operation, "/") {
					continue
				}
				for _, c := range r.Callers {
					named.add(group, operation, c)
				}
			}
		}
	}
	return named
}

// Merged returns named with what more says beside it. Neither is changed.
func Merged(named, more map[string]any) map[string]any { return tree{}.merge(named).merge(more) }

// groupsOf are the groups that patterns spell out.
func groupsOf(pipes []string) []string {
	var groups []string
	for _, p := range pipes {
		group, _, ok := strings.Cut(p, "-")
		if ok && group != "" && !strings.ContainsAny(group, `*\`) && !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	return groups
}

// tree are mappings in mappings that end in lists.
type tree map[string]any

func (t tree) add(group, operation string, c acl.CallerPattern) {
	namespace, account := c.Namespace, c.ServiceAccount
	if ns, name, ok := strings.Cut(account, "/"); ok {
		namespace, account = ns, name
	}
	switch {
	case namespace != "" && account != "":
		entry := map[string]any{}
		if c.Container != "" {
			entry["containers"] = []any{c.Container}
		}
		t.put(entry, group, operation, "pods", namespace, account)
	case namespace != "" && c.Container != "":
		t.put(map[string]any{"containers": []any{c.Container}}, group, operation, "pods", namespace, "*")
	case c.Image != "" || c.HostProcess != nil: // it is about containers, and names no process of the node
	case namespace == "" && c.Container == "" && c.User != "" && c.Exe != "" && !strings.HasSuffix(c.Exe, `\*`) && !strings.HasSuffix(c.Exe, "/*"):
		t.put(map[string]any{"programs": []any{c.Exe}}, group, operation, "hosts", c.User)
	}
}

// put adds an entry to the list at the end of a path.
func (t tree) put(entry any, path ...string) {
	at := map[string]any(t)
	for _, key := range path[:len(path)-1] {
		next, ok := at[key].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[key] = next
		}
		at = next
	}
	last := path[len(path)-1]
	list, _ := at[last].([]any)
	at[last] = append(list, entry)
}

func (t tree) merge(from map[string]any) tree {
	for key, v := range from {
		switch v := v.(type) {
		case map[string]any:
			mine, _ := t[key].(map[string]any)
			t[key] = map[string]any(tree{}.merge(mine).merge(v))
		case []any:
			list, _ := t[key].([]any)
			t[key] = append(slices.Clip(list), v...)
		default:
			t[key] = v
		}
	}
	return t
}
