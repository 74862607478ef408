package harness

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is longer than any step takes; only a test that fails waits as long.
const patience = 2 * time.Minute

// Output collects what a program writes while others read it.
type Output struct {
	mu      sync.Mutex // guards the fields below
	buf     bytes.Buffer
	changed chan struct{} // closed by the next write; nil while no reader waits
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
	return o.buf.Write(p)
}

// Bytes returns a copy of what was written so far.
func (o *Output) Bytes() []byte { return o.From(0) }

// From returns a copy of what was written after the first n bytes.
func (o *Output) From(n int) []byte {
	text, _ := o.next(n)
	return text
}

// next is From, with a channel that the next write closes.
func (o *Output) next(n int) (text []byte, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.changed == nil {
		o.changed = make(chan struct{})
	}
	return bytes.Clone(o.buf.Bytes()[n:]), o.changed
}

func (o *Output) String() string { return string(o.Bytes()) }

// Await returns when the output contains want n times. A test that waits too long fails.
func (o *Output) Await(t testing.TB, n int, want string) {
	t.Helper()
	timeout := time.After(patience)
	for {
		text, changed := o.next(0)
		if strings.Count(string(text), want) >= n {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%q is not there %d times in:\n%s", want, n, text)
		}
	}
}
