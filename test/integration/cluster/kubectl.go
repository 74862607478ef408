//go:build !windows

package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/pipeguard/pipeguard/test/harness"
)

// WriteKubeconfig writes a file for programs that act as config does. server replaces the address, if it is not empty.
func WriteKubeconfig(file string, config *rest.Config, server string) error {
	if server == "" {
		server = config.Host
	}
	out := clientcmdapi.NewConfig()
	out.Clusters["test"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: config.CAData}
	out.AuthInfos["test"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken,
		Impersonate: config.Impersonate.UserName, ImpersonateGroups: config.Impersonate.Groups,
	}
	out.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	out.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*out, file); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}
	return nil
}

// Kubectl runs kubectl as one user.
type Kubectl struct{ exe, kubeconfig, home string }

// Kubectl returns a kubectl that acts as config does.
func (a *APIServer) Kubectl(tools Tools, config *rest.Config) (*Kubectl, error) {
	dir, err := os.MkdirTemp(a.dir, "kubectl-")
	if err != nil {
		return nil, fmt.Errorf("make a home for kubectl: %w", err)
	}
	k := &Kubectl{exe: tools.Path("kubectl"), kubeconfig: filepath.Join(dir, "kubeconfig"), home: dir}
	return k, WriteKubeconfig(k.kubeconfig, config, "")
}

// Run returns what kubectl printed and its exit code. An error means that it could not be run.
func (k *Kubectl) Run(ctx context.Context, stdin string, args ...string) (stdout, stderr string, code int, err error) {
	cmd := exec.CommandContext(ctx, k.exe, append([]string{"--kubeconfig", k.kubeconfig}, args...)...) // #nosec G204 -- a program of the tests
	cmd.Env = append(cmd.Environ(), "HOME="+k.home)
	cmd.Stdin = strings.NewReader(stdin)
	return harness.Run(cmd)
}
