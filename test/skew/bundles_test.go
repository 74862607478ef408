//go:build !windows

package skew

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/bundle"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/test/harness"
)

// disksOnly is a node that a bundle decides about.
const disksOnly = `bundle: {pool: default, keys: DIR/bundle.key.pub, file: DIR/bundle.tar.gz, dir: DIR/bundles}
acl:
  rules:
    - {name: disks, pipes: ["disk-*"], operations: ["*"], callers: [{user: "uid:UID"}]}
`

// bundled is a node whose bundles a release signs.
type bundled struct {
	*node
	t   *testing.T
	key *bundle.Key
}

// newBundled has a release make the key.
func newBundled(t *testing.T, by release) *bundled {
	t.Helper()
	n := newNode(t, strings.Replace(disksOnly, "UID", uid(), 1))
	by.mustRun(t, "pipeguard", "keys", "generate", n.path("bundle.key"), "--for", "bundle")
	text, err := os.ReadFile(n.path("bundle.key"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := bundle.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return &bundled{n, t, key}
}

// policy is a PipePolicy whose subjects a caller without a container never is.
const policy = `apiVersion: pipeguard.dev/v1alpha1
kind: PipePolicy
metadata: {name: azuredisk}
spec:
  pipes: ["csi-proxy-disk-*"]
  subjects:
    - {name: driver, namespace: kube-system, serviceAccounts: [csi-azuredisk-node-sa], containers: [azuredisk]}
  node: {methods: [ListDiskIDs, PartitionDisk]}
`

// publish has a release sign the samples and the policy, and offers the bundle to the node.
func (n *bundled) publish(by release, revision uint64) {
	n.t.Helper()
	dir := n.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "policy.yaml"), []byte(policy), 0o600); err != nil {
		n.t.Fatal(err)
	}
	file := filepath.Join(dir, "bundle.tar.gz")
	by.mustRun(n.t, "pipeguard", "bundle", "build", "--key", n.path("bundle.key"), "--pool", "default", "--revision", fmt.Sprint(revision),
		"--policies", filepath.Join(dir, "policy.yaml"), "--policies", by.file("config", "samples", "pipepolicy_exception.yaml"), "--policy-revision", "sha256:abc", "--out", file)
	text, err := os.ReadFile(file)
	if err != nil {
		n.t.Fatal(err)
	}
	harness.Replace(n.t, n.path("bundle.tar.gz"), string(text))
}

// offer signs an access list as it is, which a later release may make.
func (n *bundled) offer(acl string, revision uint64) {
	n.t.Helper()
	now := time.Now()
	raw, err := bundle.Build(bundle.Bundle{
		Revision: revision, PolicyRevision: "sha256:later", Audience: "default", IssuedAt: now, ExpiresAt: now.Add(time.Hour), ACL: []byte(acl),
	}, n.key)
	if err != nil {
		n.t.Fatal(err)
	}
	harness.Replace(n.t, n.path("bundle.tar.gz"), string(raw))
}

func decidesBy(revision uint64) func(status) bool {
	return func(s status) bool { return s.Bundle.Revision == revision && s.Bundle.Invalid == "" }
}

// refusesDisks makes a call that the node's own rule would allow, and that the bundle refuses.
func (s *serving) refusesDisks(by release) string {
	s.t.Helper()
	said, allowed := s.call(by, "disk-v1", "ListDiskIDs", "{}")
	if allowed {
		s.t.Errorf("allowed by the node's own rule: %s", said)
	}
	return said
}

func TestABundleOfEitherReleaseDecidesOnNodesOfTheOther(t *testing.T) {
	bothWays(t, func(t *testing.T, p pair) {
		n := newBundled(t, p.makes)
		first := uint64(time.Now().Unix())
		n.publish(p.makes, first)
		p.reads.mustRun(t, "pipeguard", "bundle", "verify", n.path("bundle.tar.gz"), "--keys", n.path("bundle.key.pub"), "--pool", "default")
		proxy := n.start(t, p.reads)
		if s := proxy.await("the bundle decides", decidesBy(first)); s.Bundle.PolicyRevision != "sha256:abc" {
			t.Errorf("the node decides by %q", s.Bundle.PolicyRevision)
		}
		if said := proxy.refusesDisks(p.makes); !strings.Contains(said, "PipePolicy azuredisk") {
			t.Errorf("the refusal says %s", said)
		}
		proxy.stop()

		// The node goes to the release of the webhook, which is not there meanwhile, and back: what it kept decides.
		if err := os.Remove(n.path("bundle.tar.gz")); err != nil {
			t.Fatal(err)
		}
		for _, r := range []release{p.makes, p.reads} {
			proxy = n.start(t, r)
			proxy.await("what was kept decides", decidesBy(first))
			proxy.refusesDisks(p.reads)
			proxy.stop()
		}
		proxy = n.start(t, p.reads)
		n.publish(p.reads, first+1) // and the webhook to the release of the node
		proxy.await("the next bundle decides", decidesBy(first+1))
	})
}

// What a later release says in a bundle is refused as a whole: a subject whose new condition were passed over would be a wider one.
func TestABundleThatIsNotUnderstoodChangesNothing(t *testing.T) {
	old, now := releases(t)
	subject := `{"name":"driver","namespace":"kube-system"%s}`
	list := `{"schema":%q,"policies":[{"name":"later","pipes":["csi-proxy-disk-*"],"subjects":[` + subject + `]}]}`
	for name, c := range map[string]struct{ acl, remedy string }{
		"a field of a subject": {fmt.Sprintf(list, access.Schema, `,"zones":["a"]`), "if a later release made it, upgrade this program"},
		"a later form":         {fmt.Sprintf(list, "pipeguard.dev/node-rules/v9", `,"zones":["a"]`), "a later release made it; upgrade this program"},
		"an earlier form":      {fmt.Sprintf(list, "pipeguard.dev/node-rules/v1", ""), "an earlier release made it; upgrade the webhook"},
	} {
		for _, r := range []release{old, now} {
			t.Run(name+" on "+r.name, func(t *testing.T) {
				t.Parallel() // nodes look for a bundle every few seconds
				n := newBundled(t, r)
				first := uint64(time.Now().Unix())
				n.offer(c.acl, first)
				proxy := n.start(t, r)
				s := proxy.await("nothing decides", func(s status) bool { return s.Bundle.Refused != nil && s.Bundle.Invalid == "none" })
				if r == now && !strings.Contains(s.Bundle.Refused.Message, c.remedy) {
					t.Errorf("it says %s, want %q", s.Bundle.Refused.Message, c.remedy)
				}
				if said := proxy.refusesDisks(now); !strings.Contains(said, "bundle") {
					t.Errorf("without a bundle calls are refused with %s", said)
				}
				n.publish(r, first+1)
				proxy.await("a bundle that is understood decides", decidesBy(first+1))
				n.offer(c.acl, first+2)
				proxy.await("it goes on deciding", func(s status) bool { return s.Bundle.Refused != nil && decidesBy(first+1)(s) })
				if said := proxy.refusesDisks(now); !strings.Contains(said, "PipePolicy azuredisk") {
					t.Errorf("the refusal says %s", said)
				}
				proxy.stop()
			})
		}
	}
}
