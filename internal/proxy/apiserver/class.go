package apiserver

import "google.golang.org/protobuf/reflect/protoreflect"

// class says what a value in a message is, and so what a record may show of it. Numbers, truth values and enums are classified
// as texts are: a number can be a secret too.
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

// publishedClasses classifies every value of every served message.
var publishedClasses = func() map[classKey]class {
	all := map[classKey]class{}
	for _, g := range publishedGroups {
		for field, c := range g.classes {
			all[classKey{g.name, field}] = c
		}
	}
	return all
}()

// classified finds values of a message that are in no class, and ids of nothing.
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
		if !holdsValue(f) {
			continue
		}
		key := classKey{group, f.Name()}
		switch l.tables.classes[key] {
		case classPublic, classPath, classSecret:
		case classID:
			if targetKinds[key] == "" {
				l.fault("%s: no table says what %s names", group, f.FullName())
			}
		default:
			l.fault("%s: no table says whether %s may be recorded", group, f.FullName())
		}
	}
}

// holdsValue says whether a field carries a value of its own, and not only those of a message within. The keys of a map are
// values.
func holdsValue(f protoreflect.FieldDescriptor) bool { return f.IsMap() || f.Message() == nil }

// holdsText says whether a field carries free text, in its values or in the keys of a map.
func holdsText(f protoreflect.FieldDescriptor) bool {
	if f.IsMap() {
		return holdsText(f.MapKey()) || f.MapValue().Message() == nil && holdsText(f.MapValue())
	}
	return f.Kind() == protoreflect.StringKind || f.Kind() == protoreflect.BytesKind
}

// isWithheld says whether no record may show a field: it is a secret, an unclassified text, or nested so deep that it was not
// classified. An unclassified number does not come here: Load serves no such message.
func isWithheld(group string, f protoreflect.FieldDescriptor, depth int) bool {
	if depth > maxDepth {
		return true
	}
	switch publishedClasses[classKey{group, f.Name()}] {
	case classPublic, classPath, classID:
		return false
	case classSecret:
		return true
	}
	return holdsText(f)
}
