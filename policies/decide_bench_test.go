package policies_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/policy"
)

// BenchmarkDecide decides about a driver with six pipes: in its namespace, in another, and where a PipePolicy governs them.
func BenchmarkDecide(b *testing.B) {
	e, err := policy.New(patient)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := e.Activate(b.Context(), withData(modules(b), parameters("Audit"))); err != nil {
		b.Fatal(err)
	}
	for _, bb := range []struct {
		name, namespace string
		governors       []any
		access          map[string]any
		allowed         bool
	}{
		{"allowed", "kube-system", []any{}, ungoverned(), true},
		{"denied", "shop", []any{}, ungoverned(), false},
		{"subject", "kube-system", []any{"azuredisk"}, accessBy(false, subject("driver", "", "")), true},
		{"subject whose permission ends", "storage", []any{"azuredisk"}, accessBy(false, subject("migration", "2026-01-04T00:00:00Z", "2025-12-28T00:00:00Z")), true},
		{"nobody's subject", "shop", []any{"azuredisk"}, accessBy(false), false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			input := sixPipes(b, bb.namespace, bb.governors, bb.access)
			b.ReportAllocs()
			for b.Loop() {
				if d, err := e.Decide(b.Context(), input); err != nil || d.Allowed != bb.allowed {
					b.Fatal(d, err)
				}
			}
		})
	}
}

func subject(name, expiresAt, warnFrom string) map[string]any {
	return map[string]any{"policy": "azuredisk", "subject": name, "requirement": "AllowedNamespace", "expiresAt": expiresAt, "warnFrom": warnFrom, "endsSoon": warnFrom != ""}
}

func sixPipes(b *testing.B, namespace string, governors []any, access map[string]any) ast.Value {
	b.Helper()
	document := example(b, "driver").(map[string]any)
	document["namespace"] = namespace
	three := document["mounts"].([]any)
	six := slices.Concat(three, three)
	for i := range six {
		m := maps.Clone(six[i].(map[string]any))
		m["field"], m["policies"], m["access"] = m["field"].(string)+string(rune('a'+i)), governors, access
		six[i] = m
	}
	document["mounts"] = six
	input, err := policy.ToValue(document)
	if err != nil {
		b.Fatal(err)
	}
	return input
}
