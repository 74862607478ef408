package apiserver

// GroupVersion names one version of one API group.
type GroupVersion struct{ Group, Version string }

// String returns the name as it stands in pipe names: "filesystem-v1".
func (gv GroupVersion) String() string { return gv.Group + "-" + gv.Version }

// Pipe returns the last element of the pipe's name: "csi-proxy-filesystem-v1".
func (gv GroupVersion) Pipe() string { return "csi-proxy-" + gv.String() }
