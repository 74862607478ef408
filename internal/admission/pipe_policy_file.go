package admission

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

// pipePolicies reads PipePolicies by name. Each has the shape of the API's spec.
func (f *faults) pipePolicies(path string, v any) map[string]PipePolicy {
	out := map[string]PipePolicy{}
	if v == nil {
		return out
	}
	m, ok := v.(map[string]any)
	if !ok {
		f.add(path, "%s where a mapping of policies is expected", typeName(v))
		return nil
	}
	for _, name := range sortedKeys(m) {
		at := join(path, name)
		for _, fault := range validation.IsDNS1123Subdomain(name) {
			f.add(at, "not the name of a policy: %s", fault)
		}
		p, before := PipePolicy{}, len(*f)
		f.members(at, m[name], map[string]func(string, any){
			"pipes":     func(path string, v any) { p.Pipes = f.texts(path, v) },
			"admission": func(path string, v any) { f.admissionRules(path, v, &p) },
			"node":      func(path string, v any) { f.nodeRules(path, v, "action") },
			"subjects":  func(path string, v any) { p.Subjects = f.subjects(path, v) },
		})
		if len(*f) == before { // a fault of the shape would be reported a second time in other words
			p.check(f, at)
		}
		out[name] = p.withDefaults()
	}
	return out
}

func (f *faults) admissionRules(path string, v any, p *PipePolicy) {
	if v == nil {
		return
	}
	f.members(path, v, map[string]func(string, any){
		"action": func(path string, v any) { p.Action = choice(f, path, v, ActionDeny, ActionWarn, ActionAudit) },
		"requirement": func(path string, v any) {
			p.Requirement = choice(f, path, v, AllowedNamespace, PrivilegedAndAllowedNamespace, PrivilegedOrAllowedNamespace)
		},
	})
}

// nodeRules are for the proxies on the nodes. Nothing here depends on them, but a misspelt key is a fault all the same.
func (f *faults) nodeRules(path string, v any, own ...string) {
	if v == nil {
		return
	}
	known := map[string]func(string, any){}
	for _, key := range append(own, "methods", "pathPrefixes", "requireToken") {
		known[key] = func(string, any) {}
	}
	f.members(path, v, known)
}

func (f *faults) subjects(path string, v any) []access.Subject {
	if v == nil {
		return nil
	}
	entries, ok := v.([]any)
	if !ok {
		f.add(path, "%s where a list of subjects is expected", typeName(v))
		return nil
	}
	out := make([]access.Subject, len(entries))
	for i, entry := range entries {
		s := &out[i]
		f.members(element(path, i), entry, map[string]func(string, any){
			"name":            func(path string, v any) { s.Name = f.text(path, v) },
			"namespace":       func(path string, v any) { s.Namespace = f.text(path, v) },
			"serviceAccounts": func(path string, v any) { s.ServiceAccounts = f.optionalTexts(path, v) },
			"containers":      func(path string, v any) { s.Containers = f.optionalTexts(path, v) },
			"images":          func(path string, v any) { s.Images = f.optionalTexts(path, v) },
			"owner":           func(path string, v any) { s.Owner = f.text(path, v) },
			"reason":          func(path string, v any) { s.Reason = f.text(path, v) },
			"expiresAt":       func(path string, v any) { s.ExpiresAt = f.instant(path, v) },
			"node":            func(path string, v any) { f.nodeRules(path, v, "permits", "shares", "services", "limits") },
		})
	}
	return out
}

func (f *faults) text(path string, v any) string {
	s, ok := v.(string)
	if !ok {
		f.add(path, "%s where a string is expected", typeName(v))
	}
	return s
}

func (f *faults) optionalTexts(path string, v any) []string {
	if v == nil {
		return nil
	}
	return f.texts(path, v)
}

// instant reads a time as the API writes it. The zero time would mean that the permission never ends.
func (f *faults) instant(path string, v any) time.Time {
	s, ok := v.(string)
	if !ok {
		f.add(path, "%s where a time is expected, as in 2026-01-02T15:04:05Z", typeName(v))
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.IsZero() {
		f.add(path, "%s is not a time as in 2026-01-02T15:04:05Z", quote(s, maxName))
		return time.Time{}
	}
	return t.UTC()
}
