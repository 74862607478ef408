package profiles

import (
	"bytes"
	_ "embed"
	"maps"
	"slices"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/pipeguard/pipeguard/internal/core/access"
)

//go:embed drivers.yaml
var published []byte

// driver is what a driver calls, by the names of the newest API versions, and the identity that its own manifests give it.
type driver struct {
	name, namespace, account, container string
	uses                                []set
}

// set are operations of one group.
type set struct {
	group      string
	operations []string
}

// drivers are those whose Windows DaemonSets mount CSI Proxy pipes, by their names; they are read when first asked for.
var drivers = sync.OnceValue(func() []driver { return read(published) })

// read reads drivers.yaml, which is part of the program: a fault in it is one of the program.
func read(text []byte) (list []driver) {
	var all map[string]struct {
		Namespace       string
		ServiceAccounts []string `yaml:"serviceAccounts"`
		Container       string
		Pipes, Methods  []string
		RunAsUserNames  []string `yaml:"runAsUserNames"`
		Modes           map[string]map[string]struct {
			Images    []string
			HostPaths []string `yaml:"hostPaths"`
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		d := driver{name: name, namespace: f.Namespace, account: f.ServiceAccounts[0], container: f.Container}
		for _, g := range access.Groups() {
			s := set{group: g.Name}
			for _, method := range f.Methods {
				if slices.Contains(g.Methods, method) {
					s.operations = append(s.operations, method)
				}
			}
			if s.operations != nil {
				d.uses = append(d.uses, s)
			}
		}
		list = append(list, d)
	}
	return list
}
