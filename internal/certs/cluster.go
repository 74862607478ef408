package certs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/internal/periodic"
)

// owner is the field manager of what is written.
const owner = client.FieldOwner("pipeguard-certificates")

// Cluster is the Store of a real cluster, and keeps copies of the same objects for a Follower and a Chain.
type Cluster struct {
	names  Names
	client client.WithWatch

	secret         *watch // nil if there is no Secret
	configurations map[string]*watch
	changes        chan struct{} // for the Rotator
	secretChanges  chan struct{} // for the Follower
	hookChanges    chan struct{} // for whoever else looks after the configurations
}

// NewCluster makes connections, but does not use them yet.
func NewCluster(config *rest.Config, names Names) (*Cluster, error) {
	fail := func(err error) (*Cluster, error) { return nil, fmt.Errorf("objects of certificates: %w", err) }
	if err := names.check(false); err != nil {
		return fail(err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), admissionv1.AddToScheme(scheme)); err != nil {
		return fail(err)
	}
	// Two kinds that every cluster serves: there is nothing to discover.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"), meta.RESTScopeRoot)
	direct, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return fail(err)
	}
	c := &Cluster{
		names: names, client: direct, configurations: map[string]*watch{},
		changes: make(chan struct{}, 1), secretChanges: make(chan struct{}, 1), hookChanges: make(chan struct{}, 1),
	}
	for _, name := range names.Configurations {
		c.configurations[name] = newWatch(direct, &admissionv1.ValidatingWebhookConfiguration{}, &admissionv1.ValidatingWebhookConfigurationList{},
			client.ObjectKey{Name: name}, func() { periodic.Signal(c.changes); periodic.Signal(c.hookChanges) })
	}
	if names.Secret != "" {
		c.secret = newWatch(direct, &corev1.Secret{}, &corev1.SecretList{}, client.ObjectKey{Namespace: names.Namespace, Name: names.Secret},
			func() { periodic.Signal(c.changes); periodic.Signal(c.secretChanges) })
	}
	return c, nil
}

// Start keeps the copies fresh until ctx is done. A watch that fails is begun again.
func (c *Cluster) Start(ctx context.Context) error {
	var group sync.WaitGroup
	for _, w := range c.configurations {
		group.Go(func() { w.controller.RunWithContext(ctx) })
	}
	if c.secret != nil {
		group.Go(func() { c.secret.controller.RunWithContext(ctx) })
	}
	group.Wait()
	return nil
}

// Changes implements Store.
func (c *Cluster) Changes() <-chan struct{} { return c.changes }

// SecretChanges implements SecretCopy.
func (c *Cluster) SecretChanges() <-chan struct{} { return c.secretChanges }

// ConfigurationChanges has a value after any change of a configuration. It is for one reader.
func (c *Cluster) ConfigurationChanges() <-chan struct{} { return c.hookChanges }

// LatestSecret implements SecretCopy.
func (c *Cluster) LatestSecret() (Secret, bool) {
	if c.secret == nil {
		return Secret{}, false
	}
	object, known := c.secret.get()
	if s, ok := object.(*corev1.Secret); ok {
		return newSecret(s), true
	}
	return Secret{}, known
}

// LatestConfiguration implements ConfigurationCopy.
func (c *Cluster) LatestConfiguration(name string) (Configuration, bool) {
	w, ok := c.configurations[name]
	if !ok {
		return Configuration{}, false
	}
	object, known := w.get()
	if v, ok := object.(*admissionv1.ValidatingWebhookConfiguration); ok {
		return newConfiguration(v), true
	}
	return Configuration{Name: name}, known
}

// Secret implements Store.
func (c *Cluster) Secret(ctx context.Context) (Secret, error) {
	var object corev1.Secret
	err := c.client.Get(ctx, client.ObjectKey{Namespace: c.names.Namespace, Name: c.names.Secret}, &object)
	if apierrors.IsNotFound(err) {
		return Secret{}, nil
	}
	if err != nil {
		return Secret{}, fmt.Errorf("read secret %s: %w", c.names.Secret, err)
	}
	return newSecret(&object), nil
}

// WriteSecret implements Store.
func (c *Cluster) WriteSecret(ctx context.Context, s Secret) error {
	object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.names.Namespace, Name: c.names.Secret}}
	if s.Version == "" {
		object.Data = s.Data
		object.Labels = map[string]string{"app.kubernetes.io/managed-by": "pipeguard"}
		if err := c.client.Create(ctx, object, owner); err != nil {
			return fmt.Errorf("create secret %s: %w", c.names.Secret, conflict(err))
		}
		return nil
	}
	// A merge patch (RFC 7386) leaves alone what others have set: null takes a key away. It names the version that
	// was read, and so is a conflict if there is another.
	data := map[string][]byte{}
	for _, key := range []string{keyAuthority, keyAuthorityKey, keyLeaf, keyLeafKey, keyNext, keyNextKey, keyPrevious} {
		data[key] = s.Data[key]
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": s.Version}, "data": data})
	if err != nil {
		return fmt.Errorf("write secret %s: %w", c.names.Secret, err)
	}
	if err := c.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), owner); err != nil {
		return fmt.Errorf("write secret %s: %w", c.names.Secret, conflict(err))
	}
	return nil
}

// Configurations implements Store.
func (c *Cluster) Configurations(ctx context.Context) ([]Configuration, error) {
	var all []Configuration
	var errs []error
	for _, name := range c.names.Configurations {
		var object admissionv1.ValidatingWebhookConfiguration
		switch err := c.client.Get(ctx, client.ObjectKey{Name: name}, &object); {
		case apierrors.IsNotFound(err):
			all = append(all, Configuration{Name: name})
		case err != nil:
			errs = append(errs, fmt.Errorf("read configuration %s: %w", name, err))
		default:
			all = append(all, newConfiguration(&object))
		}
	}
	return all, errors.Join(errs...)
}

// WriteBundle implements Store.
func (c *Cluster) WriteBundle(ctx context.Context, to Configuration, bundle []byte) error {
	patch, err := to.patch(bundle)
	if err != nil {
		return fmt.Errorf("write caBundle of %s: %w", to.Name, err)
	}
	object := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: to.Name}}
	if err := c.client.Patch(ctx, object, client.RawPatch(types.JSONPatchType, patch), owner); err != nil {
		return fmt.Errorf("write caBundle of %s: %w", to.Name, conflict(err))
	}
	return nil
}

// conflict makes ErrConflict of what API servers say when an object is not as it was read.
func conflict(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: %w", ErrConflict, err)
	}
	return err
}

func newSecret(s *corev1.Secret) Secret {
	return Secret{Data: s.Data, UID: string(s.UID), Version: s.ResourceVersion}
}

func newConfiguration(v *admissionv1.ValidatingWebhookConfiguration) Configuration {
	c := Configuration{Name: v.Name, Version: v.ResourceVersion, Edition: fmt.Sprintf("%s/%d", v.UID, v.Generation)}
	for _, w := range v.Webhooks {
		c.Webhooks = append(c.Webhooks, Webhook{Name: w.Name, Bundle: w.ClientConfig.CABundle})
	}
	return c
}
