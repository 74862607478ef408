// Package clustercmd holds the commands that ask a cluster: "pipeguard status", and the cluster behind "pipeguard review --live" and "pipeguard explain".
// It trusts the API server no more than a file: answers are bounded in size, number and time, and their text is escaped before it is shown. It changes
// nothing in the cluster.
package clustercmd

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // kubeconfigs name it, as kubectl takes it
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/version"
)

// Requests of one command. A command sends dozens, and some more for each thousand of objects.
const (
	requestsPerSecond = 50
	requestsAtOnce    = 50
)

// connection is what the command line says of the cluster, by the names that kubectl has for it.
type connection struct {
	kubeconfig, context string
	guardNamespace      string
}

// AddFlags adds the flags that name the cluster, without the namespace.
func (c *connection) AddFlags(cmd *cobra.Command) {
	cli.Text(cmd, &c.kubeconfig, "kubeconfig", "", "kubeconfig file; without it, $KUBECONFIG or ~/.kube/config")
	cli.Text(cmd, &c.context, "context", "", "context of the kubeconfig; without it, the current one")
	cli.Text(cmd, &c.guardNamespace, "guard-namespace", "", "namespace of the webhook, if the webhook configurations do not name it or name several")
}

// open makes a client and asks nothing yet. namespace is that of the command line, or empty.
func (c *connection) open(namespace string) (*api, error) {
	for _, name := range []string{namespace, c.guardNamespace} {
		if faults := content.IsPathSegmentName(name); len(faults) > 0 {
			return nil, fmt.Errorf("namespace %q: %s", name, faults[0])
		}
	}
	klog.SetLogger(logr.Discard()) // client-go's own messages quote answers as they are
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.kubeconfig
	rules.WarnIfAllMissing = false
	raw, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	if clientcmdapi.IsConfigEmpty(raw) {
		return nil, errors.New("there is no kubeconfig: name one with --kubeconfig or in KUBECONFIG")
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.context}
	overrides.Context.Namespace = namespace
	loaded := clientcmd.NewNonInteractiveClientConfig(*raw, c.context, overrides, rules)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	own, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	a, err := newAPI(config, usual)
	if err != nil {
		return nil, err
	}
	a.namespace = own
	return a, nil
}

// newAPI returns a client of a cluster that speaks JSON to any path.
func newAPI(config *rest.Config, b bounds) (*api, error) {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"}) // Status, in which errors are told
	c := rest.CopyConfig(config)
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	c.UserAgent = "pipeguard/" + version.Number()
	c.QPS, c.Burst, c.RateLimiter = requestsPerSecond, requestsAtOnce, nil
	c.Timeout = 0 // each request has its own
	c.WarningHandler, c.WarningHandlerWithContext = rest.NoWarnings{}, nil
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return boundedTransport{next, b.bytes} })
	client, err := rest.UnversionedRESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	return &api{client: client, bounds: b, server: config.Host, namespace: metav1.NamespaceDefault}, nil
}
