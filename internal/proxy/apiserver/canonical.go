package apiserver

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// paths returns the fields of a request that are paths on the host. One in another shape would keep its own spelling.
func (l *loader) paths(group string, request protoreflect.MessageDescriptor, depth int) (fields []protoreflect.FieldDescriptor) {
	if depth > maxDepth {
		return nil // the plan has reported it
	}
	for i := range request.Fields().Len() {
		f := request.Fields().Get(i)
		switch {
		case f.Message() != nil:
			if inner := l.paths(group, f.Message(), depth+1); len(inner) > 0 {
				l.fault("%s: %s is a path within a message, which nothing makes canonical", group, inner[0].FullName())
			}
		case l.tables.classes[classKey{group, f.Name()}] != classPath:
		case f.IsList() || f.Kind() != protoreflect.StringKind:
			l.fault("%s: %s is a path and no single text", group, f.FullName())
		default:
			fields = append(fields, f)
		}
	}
	return fields
}

// canonical returns a request whose paths have their canonical spelling: the request itself if they have it already,
// and otherwise a copy.
func canonical(request proto.Message, paths []protoreflect.FieldDescriptor) proto.Message {
	copied := false
	for _, f := range paths {
		written := request.ProtoReflect().Get(f).String()
		path := safepath.Canonical(written)
		if path == written {
			continue
		}
		if !copied {
			request, copied = proto.Clone(request), true
		}
		request.ProtoReflect().Set(f, protoreflect.ValueOfString(path))
	}
	return request
}
