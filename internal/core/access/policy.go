package access

// Policy is what a PipePolicy says, in the words of both ends. Nodes get it as it is.
type Policy struct {
	// Name is that of the object.
	Name string `json:"name"`
	// Pipes are names of pipes, or beginnings of names that end in "*", in lower case.
	Pipes []string `json:"pipes"`
	// LogOnly has a node let pass what the policy does not permit, and record it.
	LogOnly bool `json:"logOnly,omitempty"`
	// Methods are the newest names of the operations; none means all.
	Methods []string `json:"methods,omitempty"`
	// PathPrefixes are the directories that calls may name; none means the working directories of the proxy.
	PathPrefixes []string `json:"pathPrefixes,omitempty"`
	// RequireToken asks callers for a token of their service account.
	RequireToken bool `json:"requireToken,omitempty"`
	// Subjects may use the pipes. Without any, nobody may.
	Subjects []Subject `json:"subjects,omitempty"`
}
