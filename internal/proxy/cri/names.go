package cri

import (
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// The labels that the kubelet puts on what it makes.
// https://github.com/kubernetes/kubernetes, staging/src/k8s.io/kubelet/pkg/types/labels.go
const (
	labelPod       = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
	labelContainer = "io.kubernetes.container.name"
)

const hex = "0123456789abcdef"

func only(s, set string) bool { return strings.Trim(s, set) == "" }

// isID says whether s is what runtimes draw for a container or a sandbox.
func isID(s string) bool { return len(s) == 64 && only(s, hex) }

// isUID says whether s is the UID of a pod: a UUID, or what the kubelet makes of the file of a static pod.
func isUID(s string) bool {
	if len(s) == 32 {
		return only(s, hex)
	}
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	plain := strings.ReplaceAll(s, "-", "")
	return len(plain) == 32 && only(plain, hex)
}

// maxImage is more than any registry lets a reference be long.
const maxImage = 1024

// isImage says whether s may be a reference to an image. It is compared with patterns and never taken apart.
func isImage(s string) bool {
	if len(s) > maxImage {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// imageOf is the reference in the pod's specification. A kubelet that does not pass it on (before 1.28) leaves the
// image's own name.
func imageOf(spec *runtimeapi.ImageSpec) string {
	if image := spec.GetUserSpecifiedImage(); image != "" {
		return image
	}
	return spec.GetImage()
}
