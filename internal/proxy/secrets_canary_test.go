package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
)

// posing says that it is an error of the runtime, and is not.
type posing struct{ text string }

func (p posing) Error() string { return p.text }
func (posing) RuntimeError()   {}

// remedy is what a host of this program says.
const remedy = "code=1219: the node has other credentials. Use one user for all shares"

// outcomes are the ways in which a call with a secret can end.
var outcomes = map[string]func(t *testing.T, k *keyring, m apiserver.Method, canary string){
	"ok": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		if err := k.call(t.Context(), m, canary); err != nil {
			t.Error(err)
		}
	},
	"an error that repeats it": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		for texts := range slices.Chunk(slices.Sorted(maps.Values(whole(canary))), 8) {
			text := strings.Join(texts, ", ")
			k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
				return nil, status.Error(codes.NotFound, "map: "+text+": it is not there")
			})
			if err := k.call(t.Context(), m, canary); status.Code(err) != codes.NotFound || status.Convert(err).Message() != withheld {
				t.Errorf("%s, %q: %v", m.FullMethod, text, err)
			}
		}
	},
	"an error of our own": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			return nil, apiserver.NewOwnError(codes.FailedPrecondition, remedy)
		})
		if err := k.call(t.Context(), m, canary); status.Code(err) != codes.FailedPrecondition || status.Convert(err).Message() != remedy {
			t.Errorf("%s: %v", m.FullMethod, err)
		}
	},
	"an error of our own that repeats it": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		for _, text := range []string{canary, strings.ToUpper(canary), "map " + canary + ": " + remedy} {
			k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
				return nil, apiserver.NewOwnError(codes.Aborted, text)
			})
			if err := k.call(t.Context(), m, canary); status.Code(err) != codes.Aborted || status.Convert(err).Message() != withheld {
				t.Errorf("%s, %q: %v", m.FullMethod, text, err)
			}
		}
	},
	"an error of our own in the words of others": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			return nil, fmt.Errorf("%x: %w", canary, apiserver.NewOwnError(codes.Aborted, remedy))
		})
		if err := k.call(t.Context(), m, canary); status.Code(err) != codes.Aborted || status.Convert(err).Message() != withheld {
			t.Errorf("%s: %v", m.FullMethod, err)
		}
	},
	"an error without a code": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			return nil, fmt.Errorf("map %q: %w", canary, errors.New(canary))
		})
		if err := k.call(t.Context(), m, canary); status.Code(err) != codes.Unknown {
			t.Error(err)
		}
	},
	"a status with details": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			st, err := status.New(codes.Aborted, canary).WithDetails(wrapperspb.String(canary))
			return nil, errors.Join(err, st.Err())
		})
		if err := k.call(t.Context(), m, canary); len(status.Convert(err).Details()) != 0 {
			t.Error(err)
		}
	},
	"an error after the request was emptied": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
			proto.Reset(call.Request)
			proto.Reset(call.Served)
			return nil, errors.New(canary)
		})
		_ = k.call(t.Context(), m, canary)
	},
	"a panic": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		for _, v := range []any{canary, errors.New(canary), posing{canary}, &posing{canary}, map[string]string{canary: canary}, status.Error(codes.OK, canary), []byte(canary)} {
			k.does(func(context.Context, *apiserver.Call) (proto.Message, error) { panic(v) })
			if err := k.call(t.Context(), m, canary); status.Code(err) != codes.Internal {
				t.Error(err)
			}
		}
	},
	"a panic of the runtime": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			var v any = canary
			return v.(proto.Message), nil //nolint:errcheck // that is the panic
		})
		_ = k.call(t.Context(), m, canary)
	},
	"denied by the access list": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.denying.Store(true)
		defer k.denying.Store(false)
		if err := k.call(t.Context(), m, canary); status.Code(err) != codes.PermissionDenied {
			t.Error(err)
		}
	},
	"denied by the request policy": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		defer k.judge.Store(nil)
		for _, rule := range []string{"PN002", requestpolicy.CodeInternal, requestpolicy.CodeTimeout} {
			k.judge.Store(&requestpolicy.Decision{Effect: audit.EffectDeny, Rule: rule, Reason: "no", Err: errors.New("evaluation")})
			if err := k.call(t.Context(), m, canary); err == nil {
				t.Error("allowed")
			}
		}
	},
	"the log takes nothing": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.failing.Store(true)
		err := k.call(t.Context(), m, canary)
		k.failing.Store(false)
		if status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	},
	"the log takes no end": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			k.failing.Store(true)
			return nil, errors.New(canary)
		})
		err := k.call(t.Context(), m, canary)
		k.failing.Store(false)
		if status.Code(err) != codes.Internal {
			t.Error(err)
		}
	},
	"too late": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		begun, finish := make(chan struct{}), make(chan struct{})
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			close(begun)
			<-finish
			return nil, errors.New(canary)
		})
		first := make(chan error, 1)
		go func() { first <- k.call(context.Background(), m, canary) }()
		<-begun
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := k.call(ctx, m, canary); status.Code(err) != codes.DeadlineExceeded { // it waits behind the first
			t.Error(err)
		}
		close(finish)
		<-first
	},
	"cancelled": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
			defer close(ended)
			cancel()
			return nil, errors.New(canary)
		})
		err := k.call(ctx, m, canary)
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("the operation did not begin: %v", err)
		}
	},
	"a request that is no protobuf": func(t *testing.T, k *keyring, m apiserver.Method, canary string) {
		request := m.NewRequest()
		request.ProtoReflect().Set(secretOf(m), protoreflect.ValueOf(canary))
		wire, err := proto.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		for _, sent := range [][]byte{append(wire, 0xff), append(wire[:len(wire)-1:len(wire)-1], 0xff), wire[:len(wire)-1]} {
			m := raw.Message(sent)
			_ = k.client(k.methods[0]).Invoke(t.Context(), k.methods[0].FullMethod, &m, &m, grpc.ForceCodecV2(raw.Codec{}))
		}
	},
}

func TestNoCanaryIsInAnyOutput(t *testing.T) {
	k := newKeyring(t)
	if len(k.methods) != 4+2+1 {
		t.Fatalf("%d methods take secrets", len(k.methods))
	}
	for i, canary := range canaries {
		for j, m := range k.methods {
			if (i+j)%3 != 0 { // each field has two canaries, and each canary two fields
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(outcomes)) {
				k.does(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return k.answer(call), nil })
				outcomes[name](t, k, m, canary)
			}
		}
	}
	orphans := k.orphaned()
	k.stop()
	outputs := outputsOf(t, k.dir)
	for name, output := range outputsOf(t, orphans) {
		outputs["orphaned: "+name] = output
	}
	for name, output := range map[string]string{
		"diagnostics": k.read(&k.diagnostics), "copies of the log": k.read(&k.lines), "policy input": k.read(&k.inputs), "answers": k.read(&k.answers), "metrics": k.metrics(),
	} {
		outputs[name] = output
	}
	search(t, outputs)
	// There was something to find in each of them.
	for name, want := range map[string][]string{
		"log":            {withheld, remedy, `"password":"[redacted]"`, `"redacted":["chap_secret"]`, `"MutualChapSecret":"[redacted]"`, `"result":"panic"`, `"result":"denied"`, `"result":"rejected"`, "not begun"},
		"diagnostics":    {"panic in a request", "call denied", "no decision", "waits for the log"},
		"policy input":   {`"remote_path": "public remote_path"`, `"chap_username"`},
		"answers":        {withheld, remedy, "audit_unavailable", "internal error"},
		"metrics":        {"pipeguard_panics_total", "grpc_server_handled_total"},
		"hunt":           {"panic"},
		"orphaned: log":  {`"stage":"Orphaned"`},
		"orphaned: hunt": {"orphaned"},
		"report":         {"NewSmbGlobalMapping"},
		"export ocsf":    {"NewSmbGlobalMapping"}, "export ecs": {"NewSmbGlobalMapping"}, "export csv": {"NewSmbGlobalMapping"},
	} {
		for _, text := range want {
			if !strings.Contains(outputs[name], text) {
				t.Errorf("%s of %d bytes does not speak of %s", name, len(outputs[name]), text)
			}
		}
	}
}

// orphaned leaves calls without an end, as a process does that is killed, and returns the log that the next one goes on with.
func (k *keyring) orphaned() string {
	k.t.Helper()
	begun, finish := make(chan struct{}, len(canaries)), make(chan struct{})
	k.does(func(context.Context, *apiserver.Call) (proto.Message, error) {
		begun <- struct{}{}
		<-finish
		return nil, errors.New("finished")
	})
	ended := make(chan error, len(canaries))
	for _, m := range k.methods { // those of one object wait for each other, so some have no intent; one of each group has
		go func() { ended <- k.call(context.Background(), m, canaries[0]) }()
	}
	<-begun
	<-begun
	lines := k.read(&k.lines)
	close(finish)
	for range k.methods {
		<-ended
	}
	dir := filepath.Join(k.t.TempDir(), "audit")
	names, err := filepath.Glob(filepath.Join(k.dir, "audit-*.jsonl"))
	if err != nil || len(names) != 1 {
		k.t.Fatalf("%d segments, %v", len(names), err)
	}
	// What is opened makes its directory itself, with the rights that it wants.
	w, err := segment.Open(context.Background(), dir, segment.Options{NoSync: true})
	if err != nil {
		k.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		k.t.Fatal(err)
	}
	old, err := filepath.Glob(filepath.Join(dir, "audit-*.jsonl"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			k.t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(names[0])), []byte(lines), 0o600); err != nil {
		k.t.Fatal(err)
	}
	if w, err = segment.Open(context.Background(), dir, segment.Options{NoSync: true}); err != nil {
		k.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		k.t.Fatal(err)
	}
	return dir
}
