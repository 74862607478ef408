package proxy

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// turnstile is a handler that lets operations go one by one and remembers which run.
type turnstile struct {
	began chan string
	mu    sync.Mutex
	doors map[string]chan struct{}
}

func newTurnstile(f *fixture) *turnstile {
	g := &turnstile{began: make(chan string, 100), doors: map[string]chan struct{}{}}
	f.handler(func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		path := apiserver.Targets(call)[0].Value
		g.began <- path
		select {
		case <-g.door(path):
			return answer(call)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})
	return g
}

func (g *turnstile) door(path string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.doors[path] == nil {
		g.doors[path] = make(chan struct{})
	}
	return g.doors[path]
}

// await waits until these operations have begun, in any order, and no other.
func (g *turnstile) await(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for range want {
		select {
		case path := <-g.began:
			got = append(got, path)
		case <-time.After(patience):
			t.Fatalf("only %v have begun, want %v", got, want)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%v have begun, want %v", got, want)
	}
}
