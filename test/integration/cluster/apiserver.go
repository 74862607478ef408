//go:build !windows

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
)

// startLimit is long, because the machine may be busy: usually the API server takes some five seconds.
const startLimit = 3 * time.Minute

// APIServerOptions say how an API server is to run.
type APIServerOptions struct {
	// Tools holds kube-apiserver and etcd.
	Tools Tools
	// Dir receives its files.
	Dir string
	// CRDs is a directory with definitions to install; empty means none.
	CRDs string
	// Flags are set on kube-apiserver beside those that StartAPIServer needs.
	Flags map[string]string
	// Log receives what kube-apiserver says; nil means nobody.
	Log io.Writer
}

// APIServer is a kube-apiserver with an etcd, NodeRestriction, RBAC and an audit log.
type APIServer struct {
	// Config is that of an administrator.
	Config *rest.Config
	// Client is an administrator's.
	Client client.Client
	// Audit is the API server's own audit log.
	Audit *AuditLog

	env *envtest.Environment
	dir string
}

// auditPolicy records who did what to which object, with the annotations of admission. Requests are recorded once, when they were answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
`

// Scheme knows the types of Kubernetes and of Pipeguard.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(clientgo.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// StartAPIServer returns when the API server answers and knows the definitions. The caller stops it.
func StartAPIServer(ctx context.Context, o APIServerOptions) (*APIServer, error) {
	policy, log := filepath.Join(o.Dir, "audit-policy.yaml"), filepath.Join(o.Dir, "audit.jsonl")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("write the audit policy: %w", err)
	}
	env := &envtest.Environment{ControlPlaneStartTimeout: startLimit, ControlPlaneStopTimeout: startLimit}
	if o.CRDs != "" {
		env.CRDDirectoryPaths, env.ErrorIfCRDPathMissing = []string{o.CRDs}, true
		env.CRDInstallOptions.MaxTime = startLimit
	}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: o.Tools.Path("etcd")}
	// A crash of the machine loses nothing that anybody would miss, and syncing to a slow disk takes seconds.
	env.ControlPlane.Etcd.Configure().Append("unsafe-no-fsync", "true")
	env.ControlPlane.KubectlPath = o.Tools.Path("kubectl")
	server := env.ControlPlane.GetAPIServer()
	server.Path, server.Err = o.Tools.Path("kube-apiserver"), o.Log
	server.Configure().
		Set("authorization-mode", "Node", "RBAC").
		Set("enable-admission-plugins", "NodeRestriction").
		Disable("disable-admission-plugins"). // envtest turns ServiceAccount off; it is part of a real cluster
		Set("audit-policy-file", policy).
		Set("audit-log-path", log).
		Set("audit-log-mode", "blocking").
		Set("max-requests-inflight", "800").
		Set("max-mutating-requests-inflight", "400")
	for flag, value := range o.Flags {
		server.Configure().Set(flag, value)
	}
	a := &APIServer{env: env, dir: o.Dir, Audit: &AuditLog{file: log}}
	var err error
	defer func() {
		if err != nil {
			_ = env.Stop() // the error says why
		}
	}()
	if a.Config, err = env.Start(); err != nil {
		return nil, fmt.Errorf("start the API server: %w", err)
	}
	a.Config.QPS = -1 // no limit
	if a.Client, err = NewClient(a.Config); err != nil {
		return nil, err
	}
	err = a.EnsureNamespace(ctx, metav1.NamespaceDefault)
	return a, err
}

// EnsureNamespace creates a namespace and its default service account, which a controller would make.
func (a *APIServer) EnsureNamespace(ctx context.Context, name string, serviceAccounts ...string) error {
	objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}}
	for _, account := range append([]string{"default"}, serviceAccounts...) {
		objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: account}})
	}
	for _, o := range objects {
		if err := a.Client.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create %T %s: %w", o, o.GetName(), err)
		}
	}
	return nil
}

// NewClient returns a client without a cache, as a user's.
func NewClient(config *rest.Config) (client.Client, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	config = rest.CopyConfig(config)
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		config.WarningHandler = rest.NoWarnings{} // the default prints them into the tests' output
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return c, nil
}

// User returns the configuration of a user with a certificate of the cluster's authority.
func (a *APIServer) User(name string, groups ...string) (*rest.Config, error) {
	user, err := a.env.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: -1})
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", name, err)
	}
	return user.Config(), nil
}

// Stop ends the API server and its etcd.
func (a *APIServer) Stop() error {
	if err := a.env.Stop(); err != nil {
		return fmt.Errorf("stop the API server: %w", err)
	}
	return nil
}
