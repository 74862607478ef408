// Package access decides who may use what, at admission and on the nodes. It is the only package that knows what a pattern matches.
package access

// Policy is a PipePolicy without Kubernetes' types, for admission and for nodes. Bundles carry it unchanged.
type Policy struct {
	// Name is that of the object.
	Name string `json:"name"`
	// Pipes are names of pipes, or beginnings of names that end in "*", in lower case.
	Pipes []string `json:"pipes"`
	// LogOnly has a node let pass what the policy does not permit, and record it.
	LogOnly bool `json:"logOnly,omitempty"`
	// Subjects may use the pipes. An empty list permits no use.
	Subjects []Subject `json:"subjects,omitempty"`
}
