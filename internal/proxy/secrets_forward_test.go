package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// What is passed on is not read: nothing of it is in a record, whatever becomes of the call.
func TestBodiesThatArePassedOnAreInNoOutput(t *testing.T) {
	var mu sync.Mutex
	var diagnostics bytes.Buffer
	var end func(raw.Message, grpc.ServerStream) error
	core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), lockedBuffer{&mu, &diagnostics}, zap.DebugLevel)
	f := start(t, "memory", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
		var m raw.Message
		if err := s.RecvMsg(&m); err != nil {
			return err
		}
		return end(m, s)
	}), func(o *Options) { o.Log = zap.New(core, zap.AddStacktrace(zap.DebugLevel)) })
	c := f.client(t, "filesystem-v1")
	calls := 0
	for _, canary := range canaries {
		for name, how := range map[string]func(raw.Message, grpc.ServerStream) error{
			"answered with itself": func(m raw.Message, s grpc.ServerStream) error { return s.SendMsg(&m) },
			"refused":              func(raw.Message, grpc.ServerStream) error { return status.Error(codes.NotFound, "it is not there") },
			"panic with it":        func(m raw.Message, _ grpc.ServerStream) error { panic(string(m)) },
			"panic with an error":  func(m raw.Message, _ grpc.ServerStream) error { panic(errors.New(string(m))) },
		} {
			end = how
			calls++
			sent, got := raw.Message(canary), raw.Message(nil)
			err := c.Invoke(within(t), "/v1.Filesystem/New", &sent, &got, grpc.ForceCodecV2(raw.Codec{}))
			if name == "answered with itself" && (err != nil || string(got) != canary) {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		}
		denied := raw.Message(canary)
		_ = c.Invoke(within(t), "/v1.Filesystem/Denied", &denied, &denied, grpc.ForceCodecV2(raw.Codec{}))
		calls++
	}
	var log strings.Builder
	for _, e := range f.log.await(t, 2*calls-len(canaries), func(e audit.Event) bool { return e.Type == audit.TypeRequest }) {
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(line)
	}
	mu.Lock()
	defer mu.Unlock()
	search(t, map[string]string{"log": log.String(), "diagnostics": diagnostics.String()})
	if !strings.Contains(log.String(), "/v1.Filesystem/New") || !strings.Contains(diagnostics.String(), "panic in a request") {
		t.Errorf("there was nothing to find: %s", diagnostics.String())
	}
}

type lockedBuffer struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (l lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Write(b)
}

func (lockedBuffer) Sync() error { return nil }
