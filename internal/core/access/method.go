package access

import (
	"slices"
	"strings"
	"unicode"
)

// IsMethod accepts /package.Service/Method and /package.Service/*.
func IsMethod(s string) bool {
	service, method, ok := CutMethod(s)
	return ok && isService(service) && (method == "*" || isWordOnly(method))
}

// CutMethod splits at the last slash, as gRPC does.
func CutMethod(s string) (service, method string, ok bool) {
	rest, ok := strings.CutPrefix(s, "/")
	at := strings.LastIndexByte(rest, '/')
	if !ok || at < 0 {
		return "", "", false
	}
	return rest[:at], rest[at+1:], true
}

// isService accepts names of protocol buffers' services: words with dots between them.
func isService(s string) bool {
	for word := range strings.SplitSeq(s, ".") {
		if !isWordOnly(word) {
			return false
		}
	}
	return true
}

func isWordOnly(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !isWord(byte(r)) }) // #nosec G115 -- one byte of ASCII
}

// IsOperation accepts names of operations, such as CreateSymlink.
func IsOperation(s string) bool {
	for i, r := range s {
		upper, lower, digit := r >= 'A' && r <= 'Z', r >= 'a' && r <= 'z', r >= '0' && r <= '9'
		if i == 0 && !upper || !upper && !lower && !digit {
			return false
		}
	}
	return s != ""
}

// isUnknown says whether an operation of the node API has only a method name, so that nothing is known about it here.
func isUnknown(group, operation string) bool {
	return !IsFullName(group) && strings.Contains(operation, "/")
}

// CoversOperation compares names as they are. What has only a method name is unknown to this program: "*" covers it
// where every method is unknown, and on pipes of the node API only its own name or its service's does. A name that no
// gRPC server should have is covered by nothing: servers do not agree on what to make of dots, slashes and escapes.
func (r *Rule) CoversOperation(group, operation string) bool {
	return coversOperation(group, operation, r.All, func(name string) bool { return slices.Contains(r.Operations, name) })
}

func coversOperation(group, operation string, all bool, has func(name string) bool) bool {
	if !strings.Contains(operation, "/") && !IsFullName(group) {
		return all || has(operation)
	}
	service, method, ok := CutMethod(operation)
	if !ok || !isService(service) || !isWordOnly(method) {
		return false
	}
	return all && IsFullName(group) || has(operation) || has("/"+service+"/*")
}
