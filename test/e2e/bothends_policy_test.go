//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/test/harness"
)

// revisions are what both ends call a policy: its hash, and the number of the bundle that it came to the node in.
type revisions struct {
	policy string
	bundle uint64
}

// short is the part of the hash that a message shows.
func (r revisions) short() string { return r.policy[:len("sha256:")+12] }

func (r revisions) number() string { return fmt.Sprintf("revision %d", r.bundle) }

// record is how a record of the node names them.
func (r revisions) record() *audit.Policy {
	return &audit.Policy{Name: "bundle", Revision: r.policy, Bundle: r.bundle}
}

// apply stores a policy as kubectl does, and waits until every replica and the node decide by it. The node is not asked to.
func (n *guardedNode) apply(t *testing.T, policy string) revisions {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := shared.Kubectl(t.Context(), "apply", "--filename="+file); err != nil {
		t.Fatal(err)
	}
	applied := time.Now()
	var r revisions
	harness.Eventually(t, readyLimit, "the policy decides and is published", func(ctx context.Context) error {
		p, err := readPolicy(ctx)
		if err != nil {
			return err
		}
		for _, condition := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionBundlesPublished} {
			c := meta.FindStatusCondition(p.Status.Conditions, condition)
			if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != p.Generation {
				return fmt.Errorf("generation %d, condition %s: %+v", p.Generation, condition, c)
			}
		}
		r.policy = p.Status.Revision
		return nil
	})
	harness.Eventually(t, time.Minute, "the node decides by it", func(ctx context.Context) error {
		s, err := n.status(ctx)
		if err == nil && (s.Bundle == nil || s.Bundle.PolicyRevision != r.policy || s.Bundle.Invalid != "" || s.Bundle.Refused != nil) {
			err = fmt.Errorf("want policy %s, the node has %+v", r.policy, s.Bundle)
		}
		if err == nil {
			r.bundle = s.Bundle.Revision
		}
		return err
	})
	t.Logf("from kubectl apply until the node decides: %.1f s", time.Since(applied).Seconds())
	return r
}

func readPolicy(ctx context.Context) (*v1alpha1.PipePolicy, error) {
	var p v1alpha1.PipePolicy
	if err := shared.Client.Get(ctx, client.ObjectKey{Name: "disk-inventory"}, &p); err != nil {
		return nil, err
	}
	if p.Status.Revision == "" {
		return nil, errors.New("the policy has no revision")
	}
	return &p, nil
}

// forgetPolicy deletes the policy, and waits until every replica judges without it.
func forgetPolicy(t *testing.T) {
	remove(t, &v1alpha1.PipePolicy{ObjectMeta: metav1.ObjectMeta{Name: "disk-inventory"}})
	harness.Eventually(t, readyLimit, "the policy is forgotten", func(ctx context.Context) error {
		for range 10 * replicas { // a connection goes to any of them
			err := shared.Client.Create(ctx, pod("default", "evil", mounts(diskPipe), onWindows), client.DryRunAll)
			if verdictOf(err) != refused || !strings.Contains(err.Error(), "PG001") {
				return fmt.Errorf("want a refusal with PG001: %w", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		return nil
	})
}
