package apiserver

import (
	"strconv"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Kinds of targets.
const (
	kindDisk     = "disk"      // a decimal number
	kindDiskName = "disk-name" // what the disk calls itself
	kindPath     = "path"      // as the caller wrote it, in the canonical spelling
	kindPortal   = "portal"    // address:port
	kindService  = "service"
	kindShare    = "share" // \\server\share
	kindTarget   = "target"
	kindVolume   = "volume"
)

// Target is one thing on the host that a request names.
type Target struct {
	Kind string // disk, disk-name, path, portal, service, share, target or volume
	// Value names it, so that spellings of one thing are one value where that is certain; what does not parse, and the case
	// of a path, are as the caller wrote them. It is cut, with a mark, when long.
	Value string
}

// targetKinds are the kinds of objects that fields name.
var targetKinds = func() map[classKey]string {
	all := map[classKey]string{}
	for _, g := range publishedGroups {
		for field, c := range g.classes {
			if c == classPath {
				all[classKey{g.name, field}] = kindPath
			}
		}
		for field, kind := range g.kinds {
			all[classKey{g.name, field}] = kind
		}
	}
	return all
}()

// Targets returns what a request names, in the order of the fields.
func Targets(call *Call) []Target {
	var targets []Target
	m := call.Request.ProtoReflect()
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		kind := targetKinds[classKey{call.Operation.Group, f.Name()}]
		switch {
		case kind == "" || f.IsMap():
		case f.IsList():
			list := m.Get(f).List()
			for j := range min(list.Len(), maxEntries) {
				targets = appendTarget(targets, kind, list.Get(j), f)
			}
		case f.Message() != nil && !m.Has(f):
		default:
			targets = appendTarget(targets, kind, m.Get(f), f)
		}
	}
	return targets
}

func appendTarget(targets []Target, kind string, v protoreflect.Value, f protoreflect.FieldDescriptor) []Target {
	var value string
	switch f.Kind() {
	case protoreflect.MessageKind:
		value = portalOf(v.Message())
	case protoreflect.Uint32Kind:
		value = strconv.FormatUint(v.Uint(), 10)
	case protoreflect.StringKind:
		value = oneSpelling(kind, v.String())
	}
	if value == "" {
		return targets
	}
	return append(targets, Target{kind, clip(value, maxText)})
}
