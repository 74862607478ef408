package order

import (
	"strings"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

// Key names an object of the host. Two keys meet if they are of one kind and have one name; two paths meet also if
// one lies within the other.
type Key struct {
	kind string
	name string
	path []string // segments, for a path
}

// Object returns the key of an object, such as a disk by its number.
func Object(kind, name string) Key { return Key{kind: kind, name: name} }

// Path returns the key of a path.
func Path(path string) Key {
	isSeparator := func(r rune) bool { return r == '\\' || r == '/' }
	return Key{kind: "path", name: path, path: strings.FieldsFunc(path, isSeparator)}
}

// String returns the object as it is shown to people.
func (k Key) String() string { return k.kind + " " + k.name }

func (k Key) meets(other Key) bool {
	if k.kind != other.kind {
		return false
	}
	if k.path == nil || other.path == nil {
		return k.name == other.name
	}
	short, long := k.path, other.path
	if len(short) > len(long) {
		short, long = long, short
	}
	// The last segments of the shorter path tell siblings apart soonest.
	for i := len(short) - 1; i >= 0; i-- {
		if !safepath.EqualFold(short[i], long[i]) {
			return false
		}
	}
	return true
}
