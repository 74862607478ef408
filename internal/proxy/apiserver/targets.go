package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

// Target is one thing on the host that a request names.
type Target struct {
	Kind  string // path, volume or service
	Value string // as the caller wrote it; cut, with a mark, when long
}

// Targets returns what a request names, in the order of the fields.
func Targets(call *Call) []Target {
	var targets []Target
	m := call.Request.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		key := classKey{call.Operation.Group, f.Name()}
		kind := targetKinds[key]
		if publishedClasses[key] == classPath {
			kind = "path"
		}
		if kind == "" || f.Kind() != protoreflect.StringKind {
			continue
		}
		if !f.IsList() {
			targets = appendTarget(targets, kind, m.Get(f).String())
			continue
		}
		list := m.Get(f).List()
		for j := range min(list.Len(), maxEntries) {
			targets = appendTarget(targets, kind, list.Get(j).String())
		}
	}
	return targets
}

func appendTarget(targets []Target, kind, value string) []Target {
	if value == "" {
		return targets
	}
	return append(targets, Target{kind, clip(value, maxText)})
}
