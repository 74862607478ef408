package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pipeguard/pipeguard/internal/httpsclient"
	"github.com/pipeguard/pipeguard/internal/proxy/cri"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

// Containers says how a caller's process leads to its container and pod. Without an endpoint, callers are known by their
// process alone.
type Containers struct {
	// Endpoint is the container runtime's CRI: \\.\pipe\containerd-containerd, or unix:///PATH.
	Endpoint string `yaml:"endpoint"`
	// Users are the accounts that the runtime may run as, S-1-5-18 if not set: the process that answers identifies callers.
	Users []string `yaml:"users"`
	// Poll is how often the runtime is asked without any news, 30s if not set.
	Poll time.Duration `yaml:"poll"`
	// Timeout is how long the runtime may take for one list, 5s if not set.
	Timeout time.Duration `yaml:"timeout"`
	// NameTimeout is how long container and service account of one caller may take, 3s if not set and at most 4s: out of
	// that time the caller is named less well.
	NameTimeout time.Duration `yaml:"nameTimeout"`
	// Kubelet is asked for the service accounts of pods.
	Kubelet Kubelet `yaml:"kubelet"`
	// Snapshot is a file with service accounts, for pods that the kubelet does not list. An account that can write it decides which service account a caller has.
	Snapshot string `yaml:"snapshot"`
}

// Kubelet is this node's.
type Kubelet struct {
	// URL is https://HOST:PORT, with port 10250 as a rule.
	URL string `yaml:"url"`
	// CAFile has the certificates, in PEM, that the kubelet's must be signed by. There is no other trust.
	CAFile string `yaml:"caFile"`
	// ServerName is the name in the kubelet's certificate. Without it, a certificate that is itself in CAFile is taken whatever names it
	// has, and any other needs the host of URL, or the node's name where that is a loopback address.
	ServerName string `yaml:"serverName"`
	// TokenFile, or CertFile and KeyFile, are the credentials.
	TokenFile string `yaml:"tokenFile"`
	CertFile  string `yaml:"certFile"`
	KeyFile   string `yaml:"keyFile"`
	// Timeout is how long the kubelet may take, 2s if not set.
	Timeout time.Duration `yaml:"timeout"`
}

// Tokens says which pipes look at their callers' tokens, and how those are verified.
type Tokens struct {
	// Verify says which tokens are believed.
	Verify token.Config `yaml:"verify"`
	// Pipes are the modes of pipes by their names, "disk-v1". Of a pipe that is not named, tokens are not looked at.
	Pipes map[string]token.Mode `yaml:"pipes"`
	// Roles are pipes, "disk-v1", on which the cluster's RBAC may allow what the access list does not: a role with the verb
	// connect, or a method's name, on pipes.pipeguard.dev with the pipe as resource name. It needs verify.api, and callers
	// whose pod and service account are known. Paths, images and limits are not RBAC's to say.
	Roles []string `yaml:"roles"`
}

// maxNameTimeout leaves room below what a connection is given to be named in.
const maxNameTimeout = 4 * time.Second

func (p *Proxy) checkCallers(add report) {
	c := p.Containers
	if c.Endpoint == "" {
		if len(c.Users) > 0 || c.Poll != 0 || c.Timeout != 0 || c.NameTimeout != 0 || c.Kubelet != (Kubelet{}) || c.Snapshot != "" {
			add("containers.endpoint", "is not set, so that the rest has no meaning")
		}
	} else if err := cri.CheckAddress(c.Endpoint); err != nil {
		add("containers.endpoint", "%v", err)
	}
	for i, user := range c.Users {
		if err := checkRuntimeUser(user); err != nil {
			add(fmt.Sprintf("containers.users[%d]", i), "%v", err)
		}
	}
	if c.Kubelet.URL != "" {
		if _, err := httpsclient.ParseServer(c.Kubelet.URL); err != nil {
			add("containers.kubelet.url", "%v", err)
		}
	}
	const least = 100 * time.Millisecond
	add.span("containers.poll", c.Poll, least, time.Hour)
	add.span("containers.timeout", c.Timeout, least, time.Minute)
	add.span("containers.nameTimeout", c.NameTimeout, least, maxNameTimeout)
	add.span("containers.kubelet.timeout", c.Kubelet.Timeout, least, maxNameTimeout)
	if len(p.Tokens.Roles) > 0 && !p.Tokens.Verify.API.IsSet() {
		add("tokens.roles", "needs tokens.verify.api, the API server to ask")
	}
	if len(p.Tokens.Pipes) > 0 || len(p.Tokens.Roles) > 0 {
		if err := p.Tokens.Verify.Check(); err != nil {
			for fault := range strings.SplitSeq(err.Error(), "\n") {
				field, text, _ := strings.Cut(fault, ": ")
				add("tokens.verify."+field, "%s", text)
			}
		}
	}
	for pipe, mode := range p.Tokens.Pipes {
		if !mode.IsValid() {
			add("tokens.pipes."+pipe, "%q: want %s, %s or %s", mode, token.Off, token.IfPresent, token.Required)
		}
	}
}

// checkRuntimeUser accepts an account that a container runtime may run as. The runtime says who callers are, so the accounts of containers are refused, as are
// the groups that Windows itself has, which no process runs as.
func checkRuntimeUser(user string) error {
	const system = "S-1-5-18"
	switch number, isUID := strings.CutPrefix(user, "uid:"); {
	case isUID:
		if _, err := strconv.ParseUint(number, 10, 32); err != nil {
			return fmt.Errorf("account %q: want uid: and a number", user)
		}
		return nil
	case user == system:
		return nil
	case strings.HasPrefix(user, peer.ContainerAccounts):
		return fmt.Errorf("account %s is that of containers: any of them could say who callers are", user)
	}
	if pipe.CheckAccount(user) != nil {
		return fmt.Errorf("account %q: want the SID of one account, such as %s, or uid: and a number", user, system)
	}
	return nil
}
