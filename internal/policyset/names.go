package policyset

import "strings"

// directory holds the files of PolicyModules among those of the base policy.
const directory = "policymodules/"

// FileName is the name under which a file of a PolicyModule is compiled. No two objects share one, and no file of a base
// policy that is read from a directory can have one without lying in a directory of that name.
func FileName(object, file string) string { return directory + object + "/" + file }

// SplitFileName is the reverse of FileName. ok is false for files of the base policy.
func SplitFileName(name string) (object, file string, ok bool) {
	rest, ok := strings.CutPrefix(name, directory)
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, "/")
}

// ownerOf is the PolicyModule that a file belongs to: nothing for files of the base policy.
func ownerOf(name string) string {
	object, _, _ := SplitFileName(name)
	return object
}
