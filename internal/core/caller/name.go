package caller

import "strings"

// IsLabel accepts what Kubernetes takes for the name of a namespace or container (RFC 1123, label). There is no case to
// fold and no second spelling in it.
func IsLabel(s string) bool {
	if s == "" || len(s) > 63 || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	return isLowerOrDash(s)
}

// IsSubdomain accepts what Kubernetes takes for the name of a pod or service account (RFC 1123, subdomain).
func IsSubdomain(s string) bool {
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || label[0] == '-' || label[len(label)-1] == '-' || !isLowerOrDash(label) {
			return false
		}
	}
	return len(s) <= 253
}

func isLowerOrDash(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}
