package requestpolicy

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/nodepolicy"
	"github.com/pipeguard/pipeguard/internal/policy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

var arrived = time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)

func driver() *Circumstances {
	return &Circumstances{
		Caller: caller.Caller{
			Assurance: "pod", Process: caller.Process{PID: 4242, Start: arrived.Add(-time.Hour), Exe: `\Device\HarddiskVolume3\driver.exe`},
			User: caller.User{SID: "S-1-5-93-2-1"}, Pod: caller.Pod{Namespace: "kube-system", Name: "driver-x", UID: "u", ServiceAccount: "driver"},
			Container: caller.Container{ID: "c0ffee", Name: "plugin", Image: "registry.example/driver:1"},
		},
		Pipe: "csi-proxy-disk-v1", Node: "win-1", Now: arrived,
	}
}

// callOf takes messages of both generators.
func callOf(group, operation string, request any) *apiserver.Call {
	c := &apiserver.Call{
		Operation: &apiserver.Operation{Group: group, Name: operation}, Version: "v1", Method: operation, FullMethod: "/v1.X/" + operation,
	}
	switch m := request.(type) {
	case proto.Message:
		c.Request = m
	case protoadapt.MessageV1:
		c.Request = protoadapt.MessageV2Of(m)
	}
	return c
}

// shown is the request of an input as JSON.
func shown(t testing.TB, call *apiserver.Call) string {
	t.Helper()
	in, err := Input(call, driver())
	if err != nil {
		t.Fatal(err)
	}
	return text(t, in.(ast.Object).Get(ast.StringTerm("request")).Value)
}

func text(t testing.TB, v ast.Value) string {
	t.Helper()
	plain, err := ast.JSON(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// evaluator has one module beside the built-in policy, or another policy altogether.
func evaluator(t testing.TB, o policy.Options, files map[string]string) *Evaluator {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = 20 * time.Second // a slow machine is no fault
	}
	if o.TestTimeout == 0 {
		o.TestTimeout = 5 * time.Minute
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := nodepolicy.Modules(files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Activate(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return e
}

// unchecked is an evaluator of which nothing was asked before it decides.
func unchecked(t testing.TB, o policy.Options, text string) *Evaluator {
	t.Helper()
	o.Entrypoint = nodepolicy.Entrypoint
	engine, err := policy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"p.rego": "package pipeguard.node\n\n" + text, "p_test.rego": "package p_test\n\ntest_p if true"}
	if _, err := engine.Activate(t.Context(), policy.Modules{Files: files}); err != nil {
		t.Fatal(err)
	}
	return &Evaluator{engine}
}

// operations visits the newest request type of every operation.
func operations(t testing.TB, visit func(op *apiserver.Operation, m apiserver.Method)) {
	t.Helper()
	apis, err := apiserver.Load(apiserver.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := len(apis) - 1; i >= 0; i-- {
		for _, m := range apis[i].Methods() {
			if name := m.Operation.Group + m.Operation.Name; m.Name == m.Operation.Name && !seen[name] {
				seen[name] = true
				visit(m.Operation, m)
			}
		}
	}
	if len(seen) < 39 {
		t.Fatalf("only %d operations", len(seen))
	}
}

// set gives every field of m a value.
func set(m protoreflect.Message, text string, list int) {
	for i := range m.Descriptor().Fields().Len() {
		f := m.Descriptor().Fields().Get(i)
		one := func() protoreflect.Value {
			switch f.Kind() {
			case protoreflect.StringKind:
				return protoreflect.ValueOfString(text)
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true)
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(1)
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(-1 << 63)
			default:
				return protoreflect.ValueOfUint32(1<<32 - 1)
			}
		}
		switch {
		case f.IsList():
			for range list {
				m.Mutable(f).List().Append(one())
			}
		case f.Message() != nil:
			set(m.Mutable(f).Message(), text, list)
		default:
			m.Set(f, one())
		}
	}
}

// record is what the chain writes of a call, as a reader of the log has it.
func record(t testing.TB, call *apiserver.Call, s *Circumstances) *audit.Event {
	t.Helper()
	e := &audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: s.Now.Add(1500 * time.Millisecond),
		Who:     audit.WhoOf(s.Caller),
		What:    &audit.What{Pipe: s.Pipe, Group: call.Operation.Group, Version: call.Version, Method: call.Operation.Name, FullMethod: call.FullMethod},
		Outcome: &audit.Outcome{Result: audit.ResultOK, LatencyUS: 1_500_000},
		Where:   &audit.Where{Node: s.Node},
	}
	if call.Request != nil {
		e.What.Params, e.What.Redacted = apiserver.Params(call)
	}
	return reread(t, e)
}

// reread writes a record as the proxy does and reads it as its readers do.
func reread(t testing.TB, e *audit.Event) *audit.Event {
	t.Helper()
	var log bytes.Buffer
	if _, err := audit.NewStream(&log).Append(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	back, err := audit.Parse(bytes.TrimSuffix(log.Bytes(), []byte("\n")))
	if err != nil {
		t.Fatal(err)
	}
	return &back
}
