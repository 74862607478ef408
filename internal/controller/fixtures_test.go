package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/admission"
	"github.com/pipeguard/pipeguard/internal/policy"
)

// noon is when tests of pure functions happen.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// base is a policy that refuses what input.bad holds.
func base() policy.Modules {
	return policy.Modules{Files: map[string]string{
		"base.rego": `package pipeguard.admission

findings contains {"code": "T001", "effect": "deny"} if input.bad

default allowed := false

allowed if count(findings) == 0

decision := {"allowed": allowed, "findings": findings}
`,
		"base_test.rego": `package pipeguard.admission_test

import data.pipeguard.admission

test_bad_is_refused if not admission.allowed with input as {"bad": true}
`,
	}}
}

// assembleFiles puts the files of PolicyModules beside those of the base, and refuses PipePolicies with unknown fields. It knows nothing else.
func assembleFiles(base policy.Modules, _ admission.Parameters, pipes []v1alpha1.PipePolicy, modules []v1alpha1.PolicyModule) (policy.Modules, error) {
	for _, p := range pipes {
		if p.Unknown != "" {
			return policy.Modules{}, fmt.Errorf("%s: %s is unknown", p.Name, p.Unknown)
		}
	}
	out := policy.Modules{Files: map[string]string{}, Data: base.Data}
	for name, text := range base.Files {
		out.Files[name] = text
	}
	for _, m := range modules {
		for _, f := range m.Spec.Modules {
			out.Files["policymodules/"+m.Name+"/"+f.Name] = f.Rego
		}
	}
	return out, nil
}

func objectMeta(name string, generation int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Generation: generation}
}

func pipePolicy(name string, generation int64, subjects ...v1alpha1.Subject) v1alpha1.PipePolicy {
	return v1alpha1.PipePolicy{ObjectMeta: objectMeta(name, generation), Spec: v1alpha1.PipePolicySpec{
		Pipes: []v1alpha1.PipePattern{"csi-proxy-disk-v1"}, Subjects: subjects,
	}}
}

func policyModule(name string, generation int64, rego string) v1alpha1.PolicyModule {
	return v1alpha1.PolicyModule{ObjectMeta: objectMeta(name, generation), Spec: v1alpha1.PolicyModuleSpec{
		Modules: []v1alpha1.RegoFile{{Name: "rule.rego", Rego: rego}},
	}}
}

const (
	goodRego   = "package pipeguard.admission\n\nfindings contains {\"code\": \"T002\", \"effect\": \"deny\"} if input.worse\n"
	brokenRego = "package pipeguard.admission\n\nfindings contains {\"code\": x} if input.worse\n"
)

// ending is a subject whose permission ends that long after noon.
func ending(name string, after time.Duration) v1alpha1.Subject {
	at := metav1.NewTime(noon.Add(after))
	return v1alpha1.Subject{Name: name, Namespace: "kube-system", Owner: "storage", Reason: "migration", ExpiresAt: &at}
}

func lasting(name string) v1alpha1.Subject {
	return v1alpha1.Subject{Name: name, Namespace: "kube-system"}
}

// memory is a cluster's policy objects without a cluster.
type memory struct {
	synced chan struct{} // closed when they are known

	mu   sync.Mutex // guards the rest
	tell func()
	policyObjects
}

func newMemory() *memory {
	m := &memory{synced: make(chan struct{})}
	close(m.synced)
	return m
}

func (m *memory) watch(ctx context.Context, changed func()) error {
	select {
	case <-m.synced:
	case <-ctx.Done():
		return ctx.Err()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell = changed
	return nil
}

func (m *memory) list(context.Context) (policyObjects, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return policyObjects{counting(slices.Clone(m.pipes)), counting(slices.Clone(m.modules))}, nil
}

// set replaces the objects, as one change.
func (m *memory) set(pipes []v1alpha1.PipePolicy, modules []v1alpha1.PolicyModule) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.policyObjects = policyObjects{pipes, modules}
	if m.tell != nil {
		m.tell()
	}
}

// counted counts the attempts of a real engine, and can fail some.
type counted struct {
	*policy.Engine
	attempts atomic.Int64
	fail     []error // of the next attempts, one each
	block    bool    // until the caller gives up
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	e, err := policy.New(policy.Options{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return &counted{Engine: e}
}

func (c *counted) Activate(ctx context.Context, m policy.Modules) (policy.Snapshot, error) {
	c.attempts.Add(1)
	if c.block {
		<-ctx.Done()
		return policy.Snapshot{}, ctx.Err()
	}
	if len(c.fail) > 0 {
		err := c.fail[0]
		c.fail = c.fail[1:]
		return policy.Snapshot{}, err
	}
	return c.Engine.Activate(ctx, m)
}

var errSlow = fmt.Errorf("run policy tests: stopped after 3: %w", context.DeadlineExceeded)

var errDisk = errors.New("input/output error")
