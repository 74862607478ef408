//go:build !windows

package integration

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"google.golang.org/grpc/metadata"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/token"
)

const tokenAudience = "pipeguard"

// bound is a pod on a node of its own, as the proxy there knows it.
type bound struct {
	pod   *corev1.Pod
	facts token.Facts
}

// boundPod makes a pod that runs on a node, as far as the API server can tell.
func boundPod(t *testing.T, namespace, account, node string) bound {
	t.Helper()
	p := named(&corev1.Pod{}, namespace)
	p.Spec = corev1.PodSpec{ServiceAccountName: account, NodeName: node, Containers: []corev1.Container{{Name: "main", Image: image}}}
	created(t, p)
	deleted(t, p)
	return bound{p, token.Facts{
		Caller: caller.Caller{Process: caller.Process{PID: 412}, Pod: caller.Pod{Namespace: namespace, Name: p.Name, UID: string(p.UID), ServiceAccount: account}},
		Alive:  func() error { return nil },
	}}
}

// requested asks the API server for a token as the kubelet does for a projected volume.
func requested(t *testing.T, p *corev1.Pod, audiences ...string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audiences, ExpirationSeconds: new(int64(3600)),
	}}
	if p.UID != "" {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Spec.ServiceAccountName}}
	if err := at(t).api.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatalf("request a token: %v", err)
	}
	return request.Status.Token
}

// fetched is what a path of the API server holds.
func fetched(t *testing.T, path string) []byte {
	t.Helper()
	browser, err := rest.HTTPClientFor(at(t).api.Config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := browser.Get(strings.TrimSuffix(at(t).api.Config.Host, "/") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %d, %v", path, answer.StatusCode, err)
	}
	return text
}

// tokenConfig is that of a node's proxy, which has the node's own credentials.
func tokenConfig(t *testing.T, node string) token.Config {
	t.Helper()
	user, err := at(t).api.User("system:node:"+node, "system:nodes")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	host := user.Host
	if !strings.HasPrefix(host, "https://") {
		host = "https://" + host
	}
	return token.Config{
		Method: token.ByReview, Audience: tokenAudience, Node: node,
		API: token.API{
			Server: host, CAFile: file("ca.crt", user.CAData), CertFile: file("tls.crt", user.CertData), KeyFile: file("tls.key", user.KeyData),
		},
	}
}

// issuer is the name that the API server gives itself in tokens.
func issuer(t *testing.T) string {
	t.Helper()
	_, after, ok := strings.Cut(string(fetched(t, "/.well-known/openid-configuration")), `"issuer":"`)
	name, _, end := strings.Cut(after, `"`)
	if !ok || !end {
		t.Fatal("the API server does not say which issuer it is")
	}
	return name
}

func TestTokensOfARealCluster(t *testing.T) {
	node := "win-" + strings.ToLower(rand.Text()[:8])
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	created(t, o)
	deleted(t, o)
	storage := namespace(t, "storage", "driver", "other")
	own := boundPod(t, storage, "driver", node)
	text := requested(t, own.pod, tokenAudience)

	review := tokenConfig(t, node)
	keys := review
	keys.Method, keys.Issuer, keys.Keys = token.ByKeys, issuer(t), filepath.Join(t.TempDir(), "jwks.json")
	if err := os.WriteFile(keys.Keys, fetched(t, "/openid/v1/jwks"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, config := range []token.Config{keys, review} {
		t.Run(string(config.Method), func(t *testing.T) {
			check := func(t *testing.T, config token.Config, text string, caller token.Facts) (token.Identity, error) {
				t.Helper()
				v, err := token.New(config, token.Metrics{})
				if err != nil {
					t.Fatal(err)
				}
				g, err := v.Guard("disk-v1", token.Required)
				if err != nil {
					t.Fatal(err)
				}
				id, _, err := g.Check(t.Context(), metadata.Pairs("authorization", "Bearer "+text), caller)
				return id, err
			}
			got, err := check(t, config, text, own.facts)
			if err != nil {
				t.Fatal(err)
			}
			want := token.Identity{
				Namespace: storage, ServiceAccount: "driver", PodName: own.pod.Name, PodUID: string(own.pod.UID), Node: node, Expires: got.Expires,
			}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}

			another := boundPod(t, storage, "driver", node)
			elsewhere := config
			elsewhere.Node = "win-elsewhere"
			unbound := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: storage}, Spec: own.pod.Spec}
			parts := strings.Split(text, ".")
			other := strings.Split(requested(t, another.pod, tokenAudience), ".")
			for name, c := range map[string]struct {
				config token.Config
				text   string
				caller token.Facts
				reason []token.Reason
			}{
				"sent by another pod":           {config, text, another.facts, []token.Reason{token.WrongPod}},
				"made for another pod":          {config, requested(t, another.pod, tokenAudience), own.facts, []token.Reason{token.WrongPod}},
				"made for another account":      {config, requested(t, boundPod(t, storage, "other", node).pod, tokenAudience), own.facts, []token.Reason{token.WrongPod}},
				"sent on another node":          {elsewhere, text, own.facts, []token.Reason{token.WrongNode}},
				"made for the API server":       {config, requested(t, own.pod), own.facts, []token.Reason{token.WrongTarget}},
				"made for somebody else":        {config, requested(t, own.pod, "vault"), own.facts, []token.Reason{token.WrongTarget}},
				"made for no pod":               {config, requested(t, unbound, tokenAudience), own.facts, []token.Reason{token.Malformed}},
				"under another token's signing": {config, parts[0] + "." + parts[1] + "." + other[2], own.facts, []token.Reason{token.Unproven, token.Rejected}},
			} {
				t.Run(name, func(t *testing.T) {
					id, err := check(t, c.config, c.text, c.caller)
					if err == nil || !strings.Contains(fmt.Sprint(c.reason), string(token.ReasonOf(err))) || id != (token.Identity{}) {
						t.Errorf("got %+v, %v, want a refusal for one of %q", id, err, c.reason)
					}
				})
			}
		})
	}

	t.Run("a deleted pod's token is refused by review", func(t *testing.T) {
		gone := boundPod(t, storage, "driver", node)
		text := requested(t, gone.pod, tokenAudience)
		if err := at(t).api.Client.Delete(t.Context(), gone.pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "refused", func(ctx context.Context) error {
			v, err := token.New(review, token.Metrics{})
			if err != nil {
				t.Fatal(err)
			}
			g, err := v.Guard("disk-v1", token.Required)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err = g.Check(ctx, metadata.Pairs("authorization", "Bearer "+text), gone.facts); err == nil || token.ReasonOf(err) != token.Rejected {
				return fmt.Errorf("got %w, want that it is rejected", err)
			}
			return nil
		})
	})
	t.Run("access follows roles", func(t *testing.T) { accessFollowsRoles(t, review, own, text) })
}

// accessFollowsRoles asks about pipes, which are no resource of the API server's: RBAC knows them by their names alone.
func accessFollowsRoles(t *testing.T, config token.Config, own bound, text string) {
	v, err := token.New(config, token.Metrics{})
	if err != nil {
		t.Fatal(err)
	}
	g, err := v.Guard("disk-v1", token.Required)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := g.Check(t.Context(), metadata.Pairs("authorization", "Bearer "+text), own.facts)
	if err != nil {
		t.Fatal(err)
	}
	forbidden := func(pipe, method string) {
		t.Helper()
		if got, err := v.Authorize(t.Context(), id, pipe, method, own.facts); err == nil || token.ReasonOf(err) != token.Forbidden {
			t.Errorf("%s %s: got %+v, %v, want that it is forbidden", pipe, method, got, err)
		}
	}
	forbidden("filesystem-v1", "PathExists")

	role := named(&rbacv1.ClusterRole{}, "")
	role.Rules = []rbacv1.PolicyRule{
		{APIGroups: []string{"pipeguard.dev"}, Resources: []string{"pipes"}, ResourceNames: []string{"disk-v1"}, Verbs: []string{"ListDiskLocations"}},
		{APIGroups: []string{"pipeguard.dev"}, Resources: []string{"pipes"}, ResourceNames: []string{"volume-v1"}, Verbs: []string{"connect"}},
	}
	binding := named(&rbacv1.ClusterRoleBinding{}, "")
	binding.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	binding.Subjects = []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own.pod.Namespace, Name: "driver"}}
	created(t, role, binding)
	deleted(t, role, binding)
	eventually(t, "allowed", func(ctx context.Context) error {
		fresh, err := token.New(config, token.Metrics{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = fresh.Authorize(ctx, id, "volume-v1", "FormatVolume", own.facts)
		return err
	})
	for _, call := range [][3]string{{"disk-v1", "ListDiskLocations", "ListDiskLocations"}, {"volume-v1", "FormatVolume", "connect"}} {
		if got, err := v.Authorize(t.Context(), id, call[0], call[1], own.facts); err != nil || got.Verb != call[2] {
			t.Errorf("%s: got %+v, %v, want that the verb %s allows it", call[0], got, err, call[2])
		}
	}
	forbidden("disk-v1", "PartitionDisk")
	forbidden("system-v1alpha1", "StopService")
}
