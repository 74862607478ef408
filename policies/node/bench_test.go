package node_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

var sizes = []int{10, 1_000, 10_000}

// BenchmarkNamed decides about calls of the examples, and about one whose caller is named.
func BenchmarkNamed(b *testing.B) {
	named := example(b, "partition_disk").(map[string]any)
	named["named"] = true
	for _, c := range []struct {
		name      string
		call      any
		isAllowed bool
	}{
		{"an ordinary call", example(b, "driver"), true},
		{"a named caller", named, true},
		{"a caller that is not named", example(b, "service_control"), false},
	} {
		b.Run(c.name, func(b *testing.B) { decide(b, modules(b), input(b, c.call), c.isAllowed) })
	}
}

// BenchmarkRules decides where that many rules were added, of which none is about the call; 0 is what the others are held
// against. OPA looks rules up by comparisons of a part of the input with a constant; those that begin with anything else it
// tries one by one.
func BenchmarkRules(b *testing.B) {
	b.Run("none/0", func(b *testing.B) { decide(b, modules(b), input(b, example(b, "driver")), true) })
	for _, way := range []struct{ name, condition string }{
		{"compared with a constant", "input.operation == \"Op%d-%d\"\n\tinput.peer.pod.namespace == \"x\""},
		{"tried one by one", `contains(input.operation, "Op%d-%d")`},
	} {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", way.name, n), func(b *testing.B) {
				decide(b, adding(b, way.condition, 10, n/10), input(b, example(b, "driver")), true)
			})
		}
	}
}

// BenchmarkModules is BenchmarkRules with the rules in a module each, which a bundle cannot have more than 256 of.
func BenchmarkModules(b *testing.B) {
	for _, n := range []int{0, 10, 1_000} {
		b.Run(fmt.Sprintf("compared with a constant/%d", n), func(b *testing.B) {
			decide(b, adding(b, `input.operation == "Op%d-%d"`, n, 1), input(b, example(b, "driver")), true)
		})
	}
}

// adding is the built-in policy and modules of that many rules each.
func adding(b *testing.B, condition string, files, rulesEach int) policy.Modules {
	b.Helper()
	m := policy.Modules{Files: modules(b).WithoutTests()}
	for i := range files {
		m.Files[fmt.Sprintf("added%d.rego", i)] = rules(condition, i, rulesEach)
	}
	m.Files["x_test.rego"] = "package x_test\n\ntest_x if true"
	return m
}

func rules(condition string, file, n int) string {
	var s strings.Builder
	s.WriteString("package pipeguard.node\n\n")
	for i := range n {
		fmt.Fprintf(&s, "findings contains {\"code\": \"R\", \"effect\": \"deny\"} if {\n\t"+condition+"\n}\n\n", file, i)
	}
	return s.String()
}

func decide(b *testing.B, m policy.Modules, in ast.Value, isAllowed bool) {
	b.Helper()
	o := nodepolicy.EngineOptions(policy.Options{Timeout: time.Minute, TestTimeout: 5 * time.Minute})
	o.Limits = policy.Limits{Files: 2_000, TotalBytes: 16 << 20, FileBytes: 1 << 20}
	e, err := requestpolicy.New(o)
	if err != nil {
		b.Fatal(err)
	}
	start := time.Now()
	if _, err := e.Activate(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	activation := time.Since(start)
	b.ReportAllocs()
	for b.Loop() {
		if d := e.DecideInput(b.Context(), in); d.Allowed() != isAllowed {
			b.Fatalf("%+v", d)
		}
	}
	b.ReportMetric(float64(activation.Milliseconds()), "ms/activation")
}
