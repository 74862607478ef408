package acl

import (
	"slices"
	"strings"
)

// isMethod accepts /package.Service/Method and /package.Service/*.
func isMethod(s string) bool {
	service, method, ok := cutMethod(s)
	return ok && isService(service) && (method == "*" || isWordOnly(method))
}

// cutMethod splits at the last slash, as gRPC does.
func cutMethod(s string) (service, method string, ok bool) {
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
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isWordRune(r) })
}

func isWordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_'
}

// isUnknown says whether an operation of the node API has only a method name, so that nothing is known about it here.
func isUnknown(group, operation string) bool {
	return !isFullName(group) && strings.Contains(operation, "/")
}

// coversOperation compares names as they are. What has only a method name is unknown to this program: "*" covers it
// where every method is unknown, and on pipes of the node API only its own name or its service's does. A name that no
// gRPC server should have is covered by nothing: servers do not agree on what to make of dots, slashes and escapes.
func (r *rule) coversOperation(group, operation string) bool {
	if !strings.Contains(operation, "/") && !isFullName(group) {
		return r.all || slices.Contains(r.operations, operation)
	}
	service, method, ok := cutMethod(operation)
	if !ok || !isService(service) || !isWordOnly(method) {
		return false
	}
	return r.all && isFullName(group) || slices.Contains(r.operations, operation) || slices.Contains(r.operations, "/"+service+"/*")
}

// Names says whether a rule for the pipe has the method by its own name. There are as many such methods as somebody wrote
// down, whatever callers send.
func (p *Policy) Names(group, version, method string) bool {
	if !isMethod(method) || strings.HasSuffix(method, "/*") {
		return false
	}
	patterns, n := patternsOf(group, version)
	for _, pattern := range patterns[:n] {
		if pipe := p.pipes[pattern]; pipe != nil && pipe.operations[method] {
			return true
		}
	}
	return false
}
