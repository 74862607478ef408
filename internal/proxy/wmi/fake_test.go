package wmi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// service stands in for WMI. It answers by hand, and what it does depends on the class alone:
// Slow takes a second, Reader returns when nobody waits for it any more, Deaf returns when it is released,
// Panic and Index panic, Unknown is no class.
type service struct {
	release chan struct{}

	mu           sync.Mutex // guards the fields below
	opened       int
	closed       int
	running      int
	most         int // that ran at one time
	begun        []string
	left         []string
	given        []parameter
	refuseOpen   error
	panicAtClose bool
}

// fakeSession is one thread's access.
type fakeSession struct {
	*service
	ended bool // close was called
}

func (s *service) open() (session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuseOpen != nil {
		return nil, s.refuseOpen
	}
	s.opened++
	return &fakeSession{service: s}, nil
}

func (f *fakeSession) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		panic("closed twice")
	}
	f.ended = true
	f.closed++
	if f.panicAtClose {
		panic("close")
	}
}

func (f *fakeSession) query(ctx context.Context, namespace, wql string, names []string) ([]Instance, error) {
	class := wql[strings.Index(wql, "FROM ")+5:]
	if err := f.act(ctx, class); err != nil {
		return nil, err
	}
	return []Instance{{Namespace: namespace, Path: class + "=@", Properties: map[string]any{"WQL": wql, "Names": len(names)}}}, nil
}

func (f *fakeSession) call(c Call, in []parameter) (Result, error) {
	f.mu.Lock()
	f.given = in
	f.mu.Unlock()
	if c.Method == "Echo" { // a provider that repeats what it is given
		return Result{}, fmt.Errorf("after, %w: %w", ErrOutcome, &Error{Code: 0x80041001, Text: "wrong: " + in[0].value.(string)})
	}
	if err := f.act(context.Background(), c.Class); err != nil {
		return Result{}, err
	}
	return Result{Return: 7}, nil
}

func (f *fakeSession) act(ctx context.Context, class string) error {
	f.mu.Lock()
	if f.ended {
		panic("used after its end")
	}
	f.begun = append(f.begun, class)
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.leave(class)
		f.mu.Unlock()
	}()
	kind, _, _ := strings.Cut(class, "_")
	switch kind {
	case "Slow":
		time.Sleep(time.Second)
	case "Reader":
		<-ctx.Done()
		return ctx.Err()
	case "Deaf":
		<-f.release
	case "Panic":
		panic("hunter2")
	case "Index":
		_ = []int{}[len(class)]
	case "Unknown":
		return &Error{Code: 0x80041010}
	}
	return nil
}

func (s *service) leave(class string) {
	s.running--
	s.left = append(s.left, class)
}

func (s *service) counts() (opened, closed, running int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.closed, s.running
}

func (s *service) begunOf(class string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, begun := range s.begun {
		if begun == class {
			n++
		}
	}
	return n
}

// start opens a pool over a fake, which is closed when the test ends.
func start(t *testing.T, o Options) (*Pool, *service) {
	t.Helper()
	s := &service{release: make(chan struct{})}
	p, err := newPool(o, s.open)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.letGo()
		if err := p.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Log(err)
		}
	})
	return p, s
}

// letGo has everything return that hangs, now and later.
func (s *service) letGo() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.release:
	default:
		close(s.release)
	}
}

// ask asks for a class's instances in the background.
func ask(ctx context.Context, p *Pool, class string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := p.Query(ctx, Query{Namespace: CIMv2, Class: class})
		done <- err
	}()
	return done
}

// act executes a method in the background.
func act(ctx context.Context, p *Pool, class string) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := p.Call(ctx, Call{Namespace: CIMv2, Class: class, Method: "M"})
		done <- err
	}()
	return done
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
