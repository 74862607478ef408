package policy

import (
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

func benchInput(b *testing.B, namespace, account string, mounts int) ast.Value {
	b.Helper()
	list := []any{}
	for i := range mounts {
		p := fmt.Sprintf(`\\.\pipe\csi-proxy-disk-v%d`, i)
		list = append(list, map[string]any{
			"container": "azuredisk", "containerType": "container", "image": "registry.example/azuredisk-csi:1", "privileged": false, "hostProcess": false,
			"volume": fmt.Sprintf("pipe-%d", i), "path": p, "subPath": "", "canonical": p, "kind": "pipe", "pipe": p[9:], "guarded": true, "neverAllowed": false,
			"field": fmt.Sprintf("spec.containers[2].volumeMounts[%d]", i), "volumeField": fmt.Sprintf("spec.volumes[%d].hostPath.path", i),
		})
	}
	containers := []any{}
	for i, name := range []string{"liveness-probe", "node-driver-registrar", "azuredisk"} {
		containers = append(containers, map[string]any{"name": name, "type": "container", "image": "registry.example/x:1", "privileged": false, "hostProcess": false, "field": fmt.Sprintf("spec.containers[%d]", i)})
	}
	return value(b, map[string]any{
		"schema": "pipeguard.dev/admission/v1", "now": "2026-01-02T03:04:05Z", "operation": "CREATE", "kind": map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"subresource": "", "namespace": namespace, "name": "x", "namespaceLabels": map[string]any{"kubernetes.io/metadata.name": namespace}, "serviceAccount": account,
		"user":   map[string]any{"name": "system:serviceaccount:kube-system:daemon-set-controller", "groups": []any{"system:authenticated"}},
		"labels": map[string]any{"app": "x"}, "annotations": map[string]any{"kubernetes.io/config.source": "api"},
		"containers": containers, "mounts": list, "unmounted": []any{},
	})
}

func BenchmarkDecideDefaultPolicy(b *testing.B) {
	for _, c := range []struct {
		name, namespace, account string
		mounts                   int
		allowed                  bool
	}{
		{"no mounts", "shop", "default", 0, true},
		{"driver allowed 3 mounts", "kube-system", "csi-azuredisk-node-sa", 3, true},
		{"driver allowed 9 mounts", "kube-system", "csi-azuredisk-node-sa", 9, true},
		{"denied 3 mounts", "shop", "default", 3, false},
		{"denied 9 mounts", "shop", "default", 9, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := activated(b, defaultPolicy(b), patient)
			input := benchInput(b, c.namespace, c.account, c.mounts)
			ctx := b.Context() // can be cancelled, as a request's
			b.ReportAllocs()
			for b.Loop() {
				if d, err := e.Decide(ctx, input); err != nil || d.Allowed != c.allowed {
					b.Fatalf("got %+v, %v", d, err)
				}
			}
		})
	}
}

func BenchmarkActivateDefaultPolicy(b *testing.B) {
	m := defaultPolicy(b)
	e := activated(b, m, patient)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Activate(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}
