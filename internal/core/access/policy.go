package access

// Policy is what a PipePolicy says, in the words of both ends. Nodes get it as it is.
type Policy struct {
	// Name is that of the object.
	Name string `json:"name"`
	// Pipes are names of pipes, or beginnings of names that end in "*", in lower case.
	Pipes []string `json:"pipes"`
	// LogOnly has a node let pass what the policy does not permit, and record it.
	LogOnly bool `json:"logOnly,omitempty"`
	// Subjects may use the pipes. Without any, nobody may.
	Subjects []Subject `json:"subjects,omitempty"`
}
