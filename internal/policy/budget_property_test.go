package policy

import (
	"context"
	"fmt"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"
)

// made returns a context with a budget, and what was taken of it.
func made(ctx context.Context) (bounded context.Context, taken func() int64) {
	ctx, _ = withBudget(ctx, nil, nil)
	b := ctx.Value(budgetKey{}).(*budget)
	return ctx, func() int64 { return maxMade - b.left.Load() }
}

func TestHonestTestsStayFarFromTheBudget(t *testing.T) {
	WithoutRaceDetector(t)
	p, problems := compile(t.Context(), defaultPolicy(t), patientOptions(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	suite, err := p.suite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n, most := 0, int64(0)
	for _, test := range suite.tests() {
		ctx, taken := made(t.Context())
		if r := suite.run(ctx, test, p.options.work()); !r.Passed {
			t.Errorf("%+v", r)
		}
		n, most = n+1, max(most, taken())
		if b := budgetOf(ctx); b.stack.paid > freeStack {
			t.Errorf("%v takes %d KiB of stack", test.name, b.stack.paid>>10)
		}
	}
	t.Logf("%d tests make %d KiB at most", n, most>>10)
	if n < 100 || most == 0 || most > maxMade/8 {
		t.Errorf("%d tests make %d bytes at most", n, most)
	}
}

func TestDecisionsAboutLargeReviewsStayFarFromTheBudget(t *testing.T) {
	p, problems := compile(t.Context(), defaultPolicy(t), patientOptions(t))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s, err := p.snapshot(t.Context(), "x", p.data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, taken := made(t.Context())
	cancel, stop := limit(ctx, patient.Timeout, p.options.work().used)
	defer stop()
	if _, err := evaluate(ctx, s.decision, manyMounts(t, 5000), cancel); err != nil {
		t.Fatal(err)
	}
	t.Logf("a decision makes %d KiB, with %d KiB of stack", taken()>>10, budgetOf(ctx).stack.paid>>10)
	if n := budgetOf(ctx).stack.paid; n > maxStack/4 {
		t.Errorf("a decision takes %d KiB of stack", n>>10)
	}
	heaviest := weight{}
	for _, k := range budgetOf(ctx).own.known {
		heaviest.steps = max(heaviest.steps, k.weight.steps)
	}
	for _, w := range budgetOf(ctx).own.partial {
		heaviest.steps = max(heaviest.steps, w.steps)
	}
	if heaviest.steps < 5000 || heaviest.steps > maxWeight/4 {
		t.Errorf("the heaviest value of a decision has %d steps", heaviest.steps)
	}
	if taken() == 0 || taken() > maxMade/2 {
		t.Errorf("a decision makes %d bytes", taken())
	}
}

// manyMounts is a pod of so many guarded mounts that nobody allowed.
func manyMounts(t *testing.T, n int) ast.Value {
	t.Helper()
	mounts := make([]any, n)
	for i := range mounts {
		pipe := fmt.Sprintf("csi-proxy-disk-v%d", i)
		mounts[i] = map[string]any{
			"container": "driver", "containerType": "container", "image": "registry.example/driver:1", "privileged": false, "hostProcess": false,
			"volume": pipe, "path": `\\.\pipe\` + pipe, "subPath": "", "canonical": `\\.\pipe\` + pipe, "kind": "pipe", "pipe": pipe,
			"guarded": true, "neverAllowed": false, "equalPower": "", "policies": []any{},
			"field": fmt.Sprintf("spec.containers[2].volumeMounts[%d]", i), "volumeField": fmt.Sprintf("spec.volumes[%d].hostPath.path", i),
		}
	}
	return value(t, map[string]any{
		"schema": "pipeguard.dev/admission/v1", "now": "2026-01-02T03:04:05Z", "operation": "CREATE",
		"kind":        map[string]any{"group": "", "version": "v1", "kind": "Pod"},
		"subresource": "", "namespace": "shop", "name": "x", "serviceAccount": "default", "labels": map[string]any{}, "annotations": map[string]any{},
		"namespaceLabels": map[string]any{"kubernetes.io/metadata.name": "shop"}, "user": map[string]any{"name": "x", "groups": []any{}},
		"pod":        map[string]any{"labels": map[string]any{}, "annotations": map[string]any{}, "field": "metadata"},
		"containers": []any{}, "mounts": mounts, "unmounted": []any{}, "persistentVolumes": []any{},
	})
}
