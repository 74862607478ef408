package config

import (
	"net/url"
	"runtime"

	"github.com/pipeguard/pipeguard/internal/bundle"
)

// Bundle is where a node gets the policies of the cluster from: an archive that is signed. Pipes that they guard are decided
// by them alone. While there is no bundle that is valid, every call on every pipe is denied.
type Bundle struct {
	// Pool is the pool of nodes that this node belongs to. Without it no bundle is asked for.
	Pool string `yaml:"pool"`
	// Keys is a file with the public keys, in PEM, one of which must have signed: two during a rotation.
	Keys string `yaml:"keys"`
	// File is the bundle, such as a mounted ConfigMap's bundle.tar.gz. It is read again every 10s.
	File string `yaml:"file"`
	// URL is asked for the bundle in place of a file: https://HOST/bundles/POOL.
	URL string `yaml:"url"`
	// CAFile has the certificates, in PEM, that the server of URL must be signed by. Without it, those that the system trusts.
	CAFile string `yaml:"caFile"`
	// Dir keeps the last good bundle and the revisions that were seen; %ProgramData%\Pipeguard\bundles if not set. An account that
	// can write there can bring back an older bundle.
	Dir string `yaml:"dir"`
	// MinimumRevision is the oldest revision that is taken, for a node whose directory was lost.
	MinimumRevision uint64 `yaml:"minimumRevision"`
}

// IsSet says whether bundles are asked for.
func (b Bundle) IsSet() bool { return b.Pool != "" }

// Directory is Dir or its default.
func (b Bundle) Directory() string {
	switch {
	case b.Dir != "":
		return b.Dir
	case runtime.GOOS == "windows":
		return `C:\ProgramData\Pipeguard\bundles`
	}
	return "/var/lib/pipeguard/bundles"
}

func (p *Proxy) checkBundle(add report) {
	b := p.Bundle
	if !p.file.Has("bundle") {
		return
	}
	if b.Pool == "" {
		add("bundle.pool", "is not set, so that the rest has no meaning")
		return
	}
	if err := bundle.CheckAudience(b.Pool); err != nil {
		add("bundle.pool", "%v", err)
	}
	if b.Keys == "" {
		add("bundle.keys", "is not set: without a key nothing is believed")
	}
	switch {
	case b.File == "" && b.URL == "":
		add("bundle.file", "neither file nor url is set")
	case b.File != "" && b.URL != "":
		add("bundle.url", "is set beside file: want one of them")
	case b.URL != "":
		if u, err := url.Parse(b.URL); err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
			add("bundle.url", "%q: want https://HOST/bundles/POOL", b.URL)
		}
	case b.CAFile != "":
		add("bundle.caFile", "is of use with url only")
	}
}
