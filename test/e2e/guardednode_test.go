//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/proxy/report"
	"github.com/pipeguard/pipeguard/test/e2e/cluster"
	"github.com/pipeguard/pipeguard/test/harness"
)

const (
	// nodeUser is whom the kubelet knows the proxy as.
	nodeUser = "pipeguard-proxy"
	// keySecret is where the chart looks for the key that signs bundles.
	keySecret = "pipeguard-bundle-key"
	// serviceName is what the webhook's certificate is for.
	serviceName = webhook + "." + system + ".svc"
	// statusAddress is where the proxy tells of itself.
	statusAddress = "127.0.0.1:9187"
)

// nodeConfig has no rule of the node's own: whatever is allowed, a bundle allows.
const nodeConfig = `apiVersion: pipeguard.dev/v1alpha1
kind: ProxyConfig
containers:
  endpoint: ` + cluster.Runtime + `
  kubelet: {url: '` + cluster.Kubelet + `', caFile: '%[1]s', certFile: '%[2]s', keyFile: '%[3]s'}
bundle:
  pool: default
  keys: '%[4]s'
  url: https://` + serviceName + `/bundles/default
  caFile: '%[5]s'
  dir: '%[6]s'
audit:
  signing: {key: '%[7]s'}
  witness: {url: 'https://` + serviceName + `/witness', key: '%[8]s', caFile: '%[5]s', interval: 2s}
`

// guardedNode is the proxy on the node, with the real container runtime and kubelet beside it.
type guardedNode struct {
	service                *cluster.Service
	proxy, config          string // program and configuration
	tools, sockets, audits string
	verifiers              string // file with the verifier keys of its audit log and of the witness
}

// guardNode gives the release a key for bundles, has it serve them, and starts a proxy on the node that asks for them.
func guardNode(t *testing.T) *guardedNode {
	dirs := map[string]string{}
	for _, name := range []string{"tools", "guard", "guard/pipes", "guard/report"} {
		dir, err := shared.Dir(name)
		if err != nil {
			t.Fatal(err)
		}
		dirs[name] = dir
	}
	n := &guardedNode{tools: dirs["tools"], sockets: dirs["guard/pipes"], audits: filepath.Join(dirs["guard"], "audit")}
	cli, err := harness.Build(t.Context(), n.tools, "-trimpath", "./cmd/pipeguard")
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := harness.Build(t.Context(), dirs["guard"], "-trimpath", "./cmd/proxy")
	if err != nil {
		t.Fatal(err)
	}

	key := filepath.Join(dirs["guard"], "bundle.key")
	if out, err := exec.CommandContext(t.Context(), cli, "keys", "generate", key, "--for", "bundle").CombinedOutput(); err != nil {
		t.Fatalf("make a key: %v\n%s", err, out)
	}
	// The Secret is the operator's, as the chart's README says: it stays until the release goes.
	if _, err := shared.Kubectl(t.Context(), "--namespace="+system, "create", "secret", "generic", keySecret, "--from-file=key.pem="+key); err != nil {
		t.Fatal(err)
	}
	logKey, witnessKey := n.auditKeys(t, cli, dirs["guard"])
	upgrade(t, "--set", "bundles.enabled=true", "--set", "bundles.serve=true", "--set", "witness.enabled=true", "--set", "witness.trustFirstUse=true")
	harness.Eventually(t, readyLimit, "the webhook enforces", enforces)

	n.proxy, n.config = proxy, n.configured(t, dirs["guard"], key+".pub", logKey, witnessKey)
	n.start(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the proxy's log\n%s", n.service.Log())
		}
		n.stop(t)
	})
	n.report(t, dirs["guard/report"])
	return n
}

// start starts the proxy, and waits until it decides by a bundle.
func (n *guardedNode) start(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(n.configFile(), []byte(n.config), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if n.service, err = shared.StartService(n.proxy, n.args()...); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, readyLimit, "the node has a bundle", func(ctx context.Context) error {
		s, err := n.status(ctx)
		if err == nil && (s.Bundle == nil || s.Bundle.Revision == 0 || s.Bundle.Invalid != "") {
			err = fmt.Errorf("it has %+v", s.Bundle)
		}
		return err
	})
}

func (n *guardedNode) configFile() string { return filepath.Join(filepath.Dir(n.audits), "proxy.yaml") }

// args is what the proxy is started with.
func (n *guardedNode) args() []string {
	return []string{
		"--host=memory", "--config=" + n.configFile(), "--socket-dir=" + n.sockets, "--audit-log=" + n.audits, "--metrics-bind-address=" + statusAddress,
	}
}

func (n *guardedNode) stop(t *testing.T) {
	t.Helper()
	if err := n.service.Stop(); err != nil {
		t.Errorf("stop the proxy: %v", err)
	}
}

// cutOff has the proxy start again where nobody answers for bundles.
func (n *guardedNode) cutOff(t *testing.T) {
	t.Helper()
	n.stop(t)
	n.config = strings.Replace(n.config, serviceName+"/", serviceName+":1/", 1)
	n.start(t)
}

// configured writes what the proxy needs to be believed by the kubelet and to believe the webhook, and returns its configuration.
func (n *guardedNode) configured(t *testing.T, dir, keys, logKey, witnessKey string) string {
	t.Helper()
	kubelet, err := shared.Credentials(nodeUser)
	if err != nil {
		t.Fatal(err)
	}
	grant(t, nodeUser, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: nodeUser},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes/pods"}, Verbs: []string{"get"}})

	var secret corev1.Secret
	if err := shared.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "pipeguard-webhook-cert"}, &secret); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(dir, "webhook.crt")
	if err := os.WriteFile(authority, secret.Data["ca.crt"], 0o600); err != nil {
		t.Fatal(err)
	}
	var service corev1.Service
	if err := shared.Client.Get(t.Context(), client.ObjectKey{Namespace: system, Name: webhook}, &service); err != nil {
		t.Fatal(err)
	}
	if err := shared.Resolve(serviceName, service.Spec.ClusterIP); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(nodeConfig, kubelet.CA, kubelet.Cert, kubelet.Key, keys, authority, filepath.Join(dir, "bundles"), logKey, witnessKey)
}

// grant makes a role for one subject.
func grant(t *testing.T, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	mustAdmit(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	mustAdmit(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{subject},
	})
}

// report has the node reported as the installer's pod reports nodes with Windows, until the test ends.
func (n *guardedNode) report(t *testing.T, dir string) {
	t.Helper()
	const account = "reporter"
	namespace(t, storage, account)
	grant(t, "node-reporter", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: storage, Name: account},
		rbacv1.PolicyRule{APIGroups: []string{"pipeguard.dev"}, Resources: []string{"guardednodes"}, Verbs: []string{"get", "create", "update"}})
	token := &authenticationv1.TokenRequest{}
	if err := shared.Client.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: storage, Name: account}}, token); err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile(shared.Authority())
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "ca.crt"), authority, 0o600), os.WriteFile(filepath.Join(dir, "token"), []byte(token.Status.Token), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.New(report.Options{Node: cluster.NodeName, Server: cluster.Server, Credentials: dir, Service: statusAddress, Say: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// nodeStatus is the part of the proxy's answer at /status that the tests look at.
type nodeStatus struct {
	Node   string         `json:"node"`
	Bundle *bundle.Status `json:"bundle"`
}

func (n *guardedNode) status(ctx context.Context) (s nodeStatus, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+statusAddress+"/status", http.NoBody)
	if err != nil {
		return s, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}
