package request

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/pipeguard/pipeguard/internal/plainyaml"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// maxParameters bounds a document of parameters. A thousand named drivers take about 100 KiB.
const maxParameters = 1 << 20

// ParseParameters reads the parameters of the built-in policy in YAML and returns them as data. It is strict, and lists every
// fault: what the policy cannot read would name nobody, silently.
//
//	named:
//	  system:                   # group
//	    StopService:            # operation, in the words of the newest version
//	      pods:
//	        kube-system:        # namespace
//	          csi-iscsi-node:   # service account, or "*" for any, which needs containers
//	            - containers: [iscsi]    # left out: any
//	              services: [MSiSCSI]    # left out: any; only of operations on services
//	      hosts:
//	        S-1-5-18:           # account of a process of the node
//	          - programs: ['C:\Tools\agent.exe']
func ParseParameters(text []byte) (map[string]any, error) {
	if len(text) > maxParameters {
		return nil, fmt.Errorf("more than %d bytes", maxParameters)
	}
	if err := plainyaml.Check(text); err != nil {
		return nil, err
	}
	var document any
	if err := yaml.UnmarshalStrict(text, &document); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	var f faults
	for path, named := range f.members("", document, "named") {
		if err := f.named(path, named); err != nil {
			return nil, err
		}
	}
	if len(f) > 0 {
		return nil, f
	}
	return Data(document), nil
}

// CheckNamed checks the value of the parameter "named" alone. An error that is an acl.Faults has their fields.
func CheckNamed(named map[string]any) error {
	var f faults
	if err := f.named("named", named); err != nil {
		return err
	}
	if len(f) > 0 {
		return acl.Faults(f)
	}
	return nil
}

func (f *faults) named(path string, named any) error {
	known, err := knownOperations()
	if err != nil {
		return err
	}
	for group, operations := range f.members(path, named, slices.Collect(maps.Keys(known))...) {
		for operation, grant := range f.members(group, operations, known[group[len(path)+1:]]...) {
			f.grant(operation, grant)
		}
	}
	slices.SortStableFunc(*f, func(a, b acl.Fault) int { return strings.Compare(a.Field, b.Field) }) // mappings have no order
	return nil
}

// Data puts the parameters of the built-in policy where it looks for them.
func Data(parameters any) map[string]any {
	return map[string]any{"pipeguard": map[string]any{"parameters": map[string]any{"node": parameters}}}
}

func knownOperations() (map[string][]string, error) {
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		return nil, err
	}
	known := map[string][]string{}
	for _, a := range apis {
		for _, op := range a.Operations() {
			known[op.Group] = append(known[op.Group], op.Name)
		}
	}
	return known, nil
}

type faults acl.Faults

// Error implements error.
func (f faults) Error() string {
	lines := make([]string, len(f))
	for i, err := range f.Unwrap() {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults one by one.
func (f faults) Unwrap() []error {
	errs := make([]error, len(f))
	for i, fault := range f {
		errs[i] = errors.New(strings.TrimPrefix(fault.Field+": ", ": ") + fault.Problem)
	}
	return errs
}

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, acl.Fault{Field: path, Problem: fmt.Sprintf(format, args...)})
}

// members returns what a mapping holds, by path. Keys must be of a list, unless there is none.
func (f *faults) members(path string, v any, of ...string) map[string]any {
	m, ok := v.(map[string]any)
	if !ok || len(m) == 0 {
		f.add(path, "want a mapping that is not empty")
		return nil
	}
	out := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		switch {
		case key == "":
			f.add(path, "an empty name")
		case len(of) > 0 && !slices.Contains(of, key):
			slices.Sort(of)
			f.add(path, "unknown name %q; known are %s", key, strings.Join(slices.Compact(of), ", "))
		default:
			out[strings.TrimPrefix(path+"."+key, ".")] = m[key]
		}
	}
	return out
}

func (f *faults) grant(path string, v any) {
	for at, callers := range f.members(path, v, "pods", "hosts") {
		if strings.HasSuffix(at, ".hosts") {
			for account, entries := range f.members(at, callers) {
				f.entries(account, entries, true, "programs", "services")
			}
			continue
		}
		for namespace, accounts := range f.members(at, callers) {
			for account, entries := range f.members(namespace, accounts) {
				// Without a service account the name of the container must be said; else both may be left out.
				f.entries(account, entries, strings.HasSuffix(account, ".*"), "containers", "services")
			}
		}
	}
}

// entries checks a list of entries. The first of keys is needed where what the entry is under says too little: the account of
// host processes has many programs.
func (f *faults) entries(path string, v any, isNeeded bool, keys ...string) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		f.add(path, "want a list that is not empty")
		return
	}
	for i, e := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		entry, ok := e.(map[string]any)
		if !ok {
			f.add(at, "want a mapping")
			continue
		}
		if _, there := entry[keys[0]]; !there && isNeeded {
			f.add(at, "needs %s", keys[0])
		}
		if len(entry) == 0 { // any container, any service
			continue
		}
		for key, texts := range f.members(at, entry, keys...) {
			f.texts(key, texts)
		}
	}
}

func (f *faults) texts(path string, v any) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		f.add(path, "want a list that is not empty")
		return
	}
	for _, e := range list {
		if s, ok := e.(string); !ok || s == "" {
			f.add(path, "want texts that are not empty")
		}
	}
}
