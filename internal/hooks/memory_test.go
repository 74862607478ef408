package hooks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pipeguard/pipeguard/internal/entries"
)

const (
	objectsName, policiesName = "pipeguard-webhook", "pipeguard-policies"
	namespace                 = "pipeguard-system"
)

// memory is a cluster in memory.
type memory struct {
	mu      sync.Mutex // guards what follows
	all     map[string]*admissionregistrationv1.ValidatingWebhookConfiguration
	writes  []string // the entries of each write
	answer  error    // to the canary
	asked   []string // namespaces of the canaries
	fault   error    // of everything
	changes chan struct{}
}

// newMemory is a cluster with the configurations as the chart makes them.
func newMemory(t *testing.T) *memory {
	t.Helper()
	m := &memory{all: map[string]*admissionregistrationv1.ValidatingWebhookConfiguration{}, changes: make(chan struct{}, 1), answer: refusal()}
	m.all[objectsName] = made(t, objectsName, "pods", "host-pods", "hostprocess-pods", "workloads", "podtemplates", "host-podtemplates", "hostprocess-podtemplates", "persistentvolumes", "host-persistentvolumes")
	m.all[policiesName] = made(t, policiesName, "policies")
	return m
}

func made(t *testing.T, name string, names ...string) *admissionregistrationv1.ValidatingWebhookConfiguration {
	t.Helper()
	c := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, ResourceVersion: "1"}}
	for _, e := range names {
		c.Webhooks = append(c.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: e + entries.Suffix, FailurePolicy: new(admissionregistrationv1.Fail),
			NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, // as API servers store none
			ClientConfig: admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: objectsName}},
		})
	}
	digest, err := entries.Digest(c.Webhooks)
	if err != nil {
		t.Fatal(err)
	}
	c.Annotations = map[string]string{entries.DigestAnnotation: digest}
	return c
}

func (m *memory) Configuration(_ context.Context, name string) (*admissionregistrationv1.ValidatingWebhookConfiguration, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c := m.all[name]; c != nil && m.fault == nil {
		return c.DeepCopy(), nil
	}
	return nil, m.fault
}

func (m *memory) WriteRules(_ context.Context, c *admissionregistrationv1.ValidatingWebhookConfiguration, rules map[int]entries.Rules) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	stored := m.all[c.Name]
	if m.fault != nil || stored.ResourceVersion != c.ResourceVersion {
		return errors.Join(m.fault, apierrors.NewConflict(admissionregistrationv1.Resource("x"), c.Name, errors.New("changed")))
	}
	text := c.Name
	for _, i := range slices.Sorted(maps.Keys(rules)) {
		stored.Webhooks[i].Rules = rules[i]
		text += " " + stored.Webhooks[i].Name
	}
	m.writes = append(m.writes, text)
	m.touch(stored)
	return nil
}

func (m *memory) Canary(_ context.Context, namespace string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, namespace)
	return m.answer
}

// touch makes a version of a configuration. The caller holds the lock.
func (m *memory) touch(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
	c.Generation++
	c.ResourceVersion = fmt.Sprint(c.Generation)
	select {
	case m.changes <- struct{}{}:
	default:
	}
}

// change has another hand change the configuration for objects.
func (m *memory) change(change func(c *admissionregistrationv1.ValidatingWebhookConfiguration)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m.all[objectsName])
	m.touch(m.all[objectsName])
}

// canaries are the namespaces to which canaries were sent.
func (m *memory) canaries() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.asked)
}

// written are the writes, each as a configuration and its entries.
func (m *memory) written() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.writes)
}

func (m *memory) answers(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answer = err
}

// inForce are the entries with their rules, and nothing may have others.
func (m *memory) inForce(t *testing.T) (out []string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range []string{objectsName, policiesName} {
		for i, e := range m.all[name].Webhooks {
			if len(e.Rules) == 0 {
				continue
			}
			if _, wrong := lacking(m.all[name], func(string) bool { return true })[i]; wrong {
				t.Errorf("%s has %+v", e.Name, e.Rules)
			}
			out = append(out, e.Name)
		}
	}
	return out
}

// refusal is what an API server answers when the webhook refuses the canary.
func refusal() error {
	return denial(`admission webhook "podtemplates.pipeguard.dev" denied the request: Pipeguard refuses PodTemplate "pipeguard-canary".` + "\nPG003: it names no single pipe")
}

func denial(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: message}}
}

// unreachable is what it answers when it cannot call the webhook.
func unreachable() error {
	return apierrors.NewInternalError(errors.New(`failed calling webhook "podtemplates.pipeguard.dev": no endpoints available`))
}

// events are the reasons of events.
type events struct {
	mu      sync.Mutex // guards reasons
	reasons []string
}

func (e *events) Eventf(_, _ runtime.Object, _, reason, _, _ string, _ ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reasons = append(e.reasons, reason)
}

func (e *events) has(reason string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Contains(e.reasons, reason)
}

// running is a Keeper at work, in a bubble of synctest.
type running struct {
	*memory
	events *events
	logs   *observer.ObservedLogs
	stop   func()
}

// run starts a Keeper.
func run(t *testing.T, m *memory, change func(*Options)) *running {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	r := &running{memory: m, events: &events{}, logs: logs}
	o := Options{
		Cluster: m, Objects: objectsName, Policies: policiesName, Service: entries.Service{Namespace: namespace, Name: objectsName}, CanaryNamespace: metav1.NamespaceSystem,
		Serves: func() error { return nil }, Changes: m.changes, Log: zap.New(core), Events: r.events,
	}
	if change != nil {
		change(&o)
	}
	k, err := NewKeeper(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- k.Start(ctx) }()
	r.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(r.stop)
	return r
}

// after lets time pass.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
