package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/pipeguard/pipeguard/test/harness"
)

// proxy is one that runs, and what its callers need.
type proxy struct {
	*harness.Process
	socketDir string
	config    string // file
	records   string // directory
}

// startProxy starts one with a configuration, on a host that exists in memory only.
func startProxy(dir, name, exe, config string) (p *proxy, err error) {
	file := func(end string) string { return filepath.Join(dir, name+end) }
	p = &proxy{socketDir: file("-pipes"), config: file(".yaml"), records: file("-audit")}
	if err := os.WriteFile(p.config, []byte(config), 0o600); err != nil {
		return nil, err
	}
	p.Process, err = start(name, exe, "--host", "memory", "--socket-dir", p.socketDir, "--config", p.config,
		"--audit-log", p.records, "--metrics-bind-address", "127.0.0.1:0")
	return p, err
}

// isReady looks for the sockets without connecting: a connection would leave a record.
func (p *proxy) isReady(context.Context) error {
	for _, name := range []string{"disk-v1", "filesystem-v1", "filesystem-v1alpha1", "volume-v1", "volume-v1beta3", "smb-v1", "system-v1alpha1"} {
		info, err := os.Stat(filepath.Join(p.socketDir, "csi-proxy-"+name+".sock"))
		if err != nil {
			return err
		}
		if info.Mode().Type() != fs.ModeSocket {
			return fmt.Errorf("%s is no socket", info.Name())
		}
	}
	return nil
}

var metricsAddress = regexp.MustCompile(`"metrics served","address":"([^"]+)"`)

// status asks the proxy by which policies it decides.
func (p *proxy) status(ctx context.Context) (url string, text []byte, err error) {
	found := metricsAddress.FindStringSubmatch(p.Stderr.String())
	if found == nil {
		return "", nil, errors.New("the log does not say yet where metrics are served")
	}
	url = "http://" + found[1] + "/status"
	text, err = get(ctx, url)
	return url, text, err
}
