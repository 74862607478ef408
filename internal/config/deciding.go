package config

// DecidingFile is a file or directory beside the configuration whose content decides about calls.
type DecidingFile struct {
	// Field is where the configuration names it: tokens.verify.keys.
	Field string
	// Path is what it says there.
	Path string
}

// DecidingFiles are those that are set: who can change one of them decides who callers are, which policies are believed or what is
// refused, as who can change the configuration does. Archives of bundles are not among them, since those are signed.
func (p Proxy) DecidingFiles() []DecidingFile {
	var set []DecidingFile
	for _, f := range []DecidingFile{
		{"requestPolicy.modules", p.RequestPolicy.Modules},
		{"bundle.keys", p.Bundle.Keys},
		{"containers.snapshot", p.Containers.Snapshot},
		{"containers.kubelet.caFile", p.Containers.Kubelet.CAFile},
		{"tokens.verify.keys", p.Tokens.Verify.Keys},
		{"tokens.verify.api.caFile", p.Tokens.Verify.API.CAFile},
	} {
		if f.Path != "" {
			set = append(set, f)
		}
	}
	return set
}
