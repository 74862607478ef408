package request

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

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
//	          csi-iscsi-node:   # service account
//	            - containers: [iscsi]    # left out: any
//	              services: [MSiSCSI]    # left out: any; only of operations on services
//	      hosts:
//	        S-1-5-18:           # account of a process of the node
//	          - programs: ['C:\Tools\agent.exe']
func ParseParameters(text []byte) (map[string]any, error) {
	if len(text) > maxParameters {
		return nil, fmt.Errorf("more than %d bytes", maxParameters)
	}
	var document any
	if err := yaml.UnmarshalStrict(text, &document); err != nil {
		return nil, fmt.Errorf("not valid YAML: %w", err)
	}
	known, err := knownOperations()
	if err != nil {
		return nil, err
	}
	var f faults
	for path, groups := range f.members("", document, "named") {
		for group, operations := range f.members(path, groups, slices.Collect(maps.Keys(known))...) {
			for operation, grant := range f.members(group, operations, known[group[len(path)+1:]]...) {
				f.grant(operation, grant)
			}
		}
	}
	if len(f) > 0 {
		return nil, errors.Join(f...)
	}
	return Data(document), nil
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

type faults []error

func (f *faults) add(path, format string, args ...any) {
	*f = append(*f, errors.New(strings.TrimPrefix(path+": ", ": ")+fmt.Sprintf(format, args...)))
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
				f.entries(account, entries, "programs", "services")
			}
			continue
		}
		for namespace, accounts := range f.members(at, callers) {
			for account, entries := range f.members(namespace, accounts) {
				f.entries(account, entries, "containers", "services")
			}
		}
	}
}

// entries checks a list of entries. The first of keys is needed of a host process, whose account has many programs.
func (f *faults) entries(path string, v any, keys ...string) {
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
		if _, there := entry["programs"]; !there && keys[0] == "programs" {
			f.add(at, "needs programs")
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
