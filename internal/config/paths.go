package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// checkPaths refuses names of files and directories that depend on where the proxy is started, or on links on the way. One that is not set is in order.
func (p *Proxy) checkPaths(add report) {
	kubelet, api := p.Containers.Kubelet, p.Tokens.Verify.API
	for _, f := range []struct{ field, path string }{
		{"log.path", p.Log.Path},
		{"requestPolicy.modules", p.RequestPolicy.Modules},
		{"bundle.keys", p.Bundle.Keys}, {"bundle.file", p.Bundle.File}, {"bundle.caFile", p.Bundle.CAFile}, {"bundle.dir", p.Bundle.Dir},
		{"audit.path", strings.TrimPrefix(p.Audit.Path, "-")}, // standard output
		{"audit.signing.key", p.Audit.Signing.Key}, {"audit.signing.old", p.Audit.Signing.Old},
		{"audit.witness.caFile", p.Audit.Witness.CAFile}, {"audit.copies.otlp.caFile", p.Audit.Copies.OTLP.CAFile},
		{"containers.snapshot", p.Containers.Snapshot},
		{"containers.kubelet.caFile", kubelet.CAFile}, {"containers.kubelet.tokenFile", kubelet.TokenFile},
		{"containers.kubelet.certFile", kubelet.CertFile}, {"containers.kubelet.keyFile", kubelet.KeyFile},
		{"tokens.verify.keys", p.Tokens.Verify.Keys},
		{"tokens.verify.api.caFile", api.CAFile}, {"tokens.verify.api.tokenFile", api.TokenFile},
		{"tokens.verify.api.certFile", api.CertFile}, {"tokens.verify.api.keyFile", api.KeyFile},
	} {
		if err := checkFullPath(f.path); err != nil {
			add(f.field, "%q: %v", f.path, err)
		}
	}
}

func checkFullPath(path string) error {
	switch {
	case path == "":
	case !filepath.IsAbs(path) && !isWindowsPath(path):
		return errors.New("want a full path")
	case slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), ".."):
		return fmt.Errorf("want a full path without %q", "..")
	}
	return nil
}

// isWindowsPath says whether a path is full on Windows, wherever the file is checked.
func isWindowsPath(path string) bool {
	return len(path) > 3 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}
