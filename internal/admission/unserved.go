package admission

import (
	admissionv1 "k8s.io/api/admission/v1"
)

// ServedPipes knows which nodes serve which pipes.
type ServedPipes interface {
	// Missing reports whether it is certain that no node that reports serves a pipe, named in lower case, or that the node of a name
	// does not, if one is given. It is asked during reviews, and answers from memory.
	Missing(pipe, node string) bool
}

// showServed ends a warning about a pipe that is not served.
const showServed = ": kubectl get guardednodes -o wide"

// unserved warns about guarded pipes that containers mount and that no node serves: their pods wait for ever. It is advice, for a person who
// is permitted to use the pipe. It is no finding, so that neither the verdict nor its record depends on what nodes report.
func (r *Reviewer) unserved(j *judgement) []string {
	if r.o.Pipes == nil || j.input.Kind.Kind == "Pod" && j.input.Operation != string(admissionv1.Create) { // whose volumes do not change
		return nil
	}
	var pipes []string
	var seen map[string]bool
	for i := range j.input.Mounts {
		m := &j.input.Mounts[i]
		if !m.Guarded || m.NeverAllowed || m.Pipe == "" || seen[m.Pipe] || !r.o.Pipes.Missing(m.Pipe, j.nodeName) {
			continue
		}
		if seen == nil {
			seen = map[string]bool{}
		}
		seen[m.Pipe] = true
		pipes = append(pipes, m.Pipe)
	}
	return limited(len(pipes), func(i int) string {
		const short = 40
		text := "Pipeguard: no node that reports serves pipe " + quote(pipes[i], short)
		if j.nodeName != "" {
			text = "Pipeguard: pipe " + quote(pipes[i], short) + " is not served on node " + quote(j.nodeName, maxName)
		}
		return clip(text, maxWarningLen-len(showServed)) + showServed
	})
}
