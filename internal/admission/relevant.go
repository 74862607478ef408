package admission

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// annotationDomain is the domain of the annotations that Windows container runtimes obey.
const annotationDomain = "microsoft.com"

// isRelevant reports whether an input holds anything to decide: a device, a share or a path of equal power of the
// host, a HostProcess container, or an annotation that could make one. All other objects pass without asking the policy, which is what lets most
// of a cluster's pods through in microseconds, and what the webhook configuration's match conditions do already.
func isRelevant(e *extraction, pod *metadata) bool {
	if len(e.mounts) > 0 || len(e.unmounted) > 0 || len(e.persistent) > 0 || slices.ContainsFunc(e.containers, func(c Container) bool { return c.HostProcess }) {
		return true
	}
	for key := range pod.annotations {
		if isRuntimeAnnotation(key) {
			return true
		}
	}
	return false
}

func isRuntimeAnnotation(key string) bool {
	return strings.Contains(strings.ToLower(key), annotationDomain)
}

// mayMatter reports whether an object with this key anywhere in it could be relevant, or is none that can be read: where a key
// leads towards a pod's volumes and containers, a value of another type makes the object one that is read, and refused. It is asked while the envelope is
// read, so that an object of which it denies every key need not be read at all: only the keys hostPath and, in a PersistentVolume,
// local lead to a path, only hostProcess to a HostProcess container, and only an annotation's key to an annotation. The key is decoded, so
// spelling it with escapes changes nothing. A key beyond ASCII may fold to anything, so it is read.
func mayMatter(key []byte, value byte, element bool) bool {
	if isMistyped(key, value, element) {
		return true
	}
	switch len(key) {
	case len("local"):
		if string(key) == "local" {
			return true
		}
	case len("hostPath"):
		if string(key) == "hostPath" {
			return true
		}
	case len("hostProcess"):
		if string(key) == "hostProcess" {
			return true
		}
	}
	dot := false
	for _, c := range key {
		if c >= utf8.RuneSelf {
			return true
		}
		dot = dot || c == '.'
	}
	return dot && len(key) >= len(annotationDomain) && isRuntimeAnnotation(string(key))
}

// isMistyped reports whether a value, or an element of a list, begins like none that the reading of a PodSpec takes under this
// key. Elsewhere in an object the key may mean something else: reading the object decides.
func isMistyped(key []byte, value byte, element bool) bool {
	if value == 'n' {
		return false
	}
	switch string(key) {
	case "metadata", "spec", "template", "jobTemplate", "securityContext", "windowsOptions":
		return !element && value != '{'
	case "volumes", "containers", "initContainers", "ephemeralContainers", "volumeMounts":
		return element && value != '{' || !element && value != '['
	}
	return false
}
