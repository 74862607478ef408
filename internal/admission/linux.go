package admission

import (
	"maps"
	"slices"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
)

// placement is the part of a PodSpec that can prove on which system its pods run: the texts of os, nodeSelector and affinity.
type placement struct{ os, nodeSelector, affinity []byte }

const (
	osLabel = "kubernetes.io/os"
	linux   = "linux"
	windows = "windows"
	// maxTerms is the most that is read of a node affinity: terms, expressions in each of them, and values in each of these.
	maxTerms = 32
)

// isLinux reports whether only a node of Linux runs the pod. Before a kubelet runs a pod, it compares these fields with its own system and
// its node's labels, even for a pod that is bound to the node by hand
// (https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/lifecycle/predicate.go). What cannot be read proves nothing.
//
// The match conditions of the webhook configuration have the same definition in CEL, and a test on an API server holds the two together.
func (p *placement) isLinux() bool {
	return textOf(p.os, "name") == linux || textOf(p.nodeSelector, osLabel) == linux || p.affinityIsLinux()
}

// textOf is the text of a key of an object, empty if it cannot be read.
func textOf(object []byte, key string) (text string) {
	if object == nil {
		return ""
	}
	r := jsonscan.NewReader(object)
	if r.Members(jsonscan.Text(key, &text)); r.Err() != nil {
		return ""
	}
	return text
}

// affinityIsLinux reports whether there is a required node affinity, and each of its terms, of which a node must meet one, is for Linux alone.
func (p *placement) affinityIsLinux() bool {
	if p.affinity == nil {
		return false
	}
	r := jsonscan.NewReader(p.affinity)
	terms, proven := 0, 0
	r.Members(jsonscan.Value("nodeAffinity", func() {
		r.Members(jsonscan.Value("requiredDuringSchedulingIgnoredDuringExecution", func() {
			r.Members(jsonscan.Value("nodeSelectorTerms", func() {
				for a := r.Array(); a.Next(); {
					terms++
					if isLinuxTerm(r) {
						proven++
					}
				}
			}))
		}))
	}))
	return r.Err() == nil && 0 < terms && terms <= maxTerms && proven == terms
}

func isLinuxTerm(r *jsonscan.Reader) bool {
	expressions, proven := 0, false
	r.Members(jsonscan.Value("matchExpressions", func() {
		for a := r.Array(); a.Next(); {
			expressions++
			proven = isLinuxExpression(r) || proven
		}
	}))
	return proven && expressions <= maxTerms
}

func isLinuxExpression(r *jsonscan.Reader) bool {
	var key, operator string
	var values []string
	more := false
	r.Members(jsonscan.Text("key", &key), jsonscan.Text("operator", &operator), jsonscan.Value("values", func() {
		for a := r.Array(); a.Next(); {
			if more = len(values) == maxTerms; more {
				r.Skip()
				continue
			}
			values = append(values, r.String())
		}
	}))
	switch {
	case key != osLabel || more:
		return false
	case operator == "In":
		return slices.Equal(values, []string{linux})
	}
	return operator == "NotIn" && slices.Contains(values, windows)
}

// leaveOutWindows takes from a pod of Linux, or a template of such pods, what means something on Windows alone: paths of the node, which are
// none of Windows, HostProcess, and annotations for runtimes of Windows. What is left holds nothing to decide.
func (obj *object) leaveOutWindows() {
	s := &obj.pod
	s.hostPaths, s.windows = nil, windowsOptions{}
	for _, list := range [][]container{s.containers, s.initContainers, s.ephemeral} {
		for i := range list {
			list[i].windows = windowsOptions{}
		}
	}
	maps.DeleteFunc(obj.podMeta().annotations, func(key, _ string) bool { return isRuntimeAnnotation(key) })
}
