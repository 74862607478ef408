package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

// class says what a text in a message is, and so what a record may show of it.
type class string

const (
	classPublic class = "public" // says nothing that a reader of the log may not know
	classPath   class = "path"   // a path on the host
	classID     class = "id"     // names an object of the host
	classSecret class = "secret" // never leaves the request
)

// classKey is a field name within a group: one name means one thing there, in every version.
type classKey struct {
	group string
	field protoreflect.Name
}

// publishedClasses classifies every text of every served message.
var publishedClasses = func() map[classKey]class {
	all := map[classKey]class{}
	for _, g := range publishedGroups {
		for field, c := range g.classes {
			all[classKey{g.name, field}] = c
		}
	}
	return all
}()

// classified finds texts of a message that are in no class, and ids of nothing.
func (l *loader) classified(group string, m protoreflect.MessageDescriptor, depth int) {
	if depth > maxDepth {
		return // the plan has reported it
	}
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		if inner := f.Message(); inner != nil && !f.IsMap() {
			l.classified(group, inner, depth+1)
			continue
		}
		if f.IsMap() && f.MapValue().Message() != nil {
			l.classified(group, f.MapValue().Message(), depth+1)
		}
		if !holdsText(f) {
			continue
		}
		key := classKey{group, f.Name()}
		switch l.tables.classes[key] {
		case classPublic, classPath, classSecret:
		case classID:
			if targetKinds[key] == "" {
				l.fault("%s: nobody has said what %s names", group, f.FullName())
			}
		default:
			l.fault("%s: nobody has said whether %s may be recorded", group, f.FullName())
		}
	}
}

// holdsText says whether a field carries free text, in its values or in the keys of a map.
func holdsText(f protoreflect.FieldDescriptor) bool {
	if f.IsMap() {
		return holdsText(f.MapKey()) || f.MapValue().Message() == nil && holdsText(f.MapValue())
	}
	return f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind
}
