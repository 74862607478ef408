package policy

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// work is what is done on some threads, each for some time. What else the process does, for others, is no part of it.
type work struct {
	threadTime func() (used func() time.Duration, release func())

	mu      sync.Mutex // guards the rest
	past    time.Duration
	threads []*thread
}

// thread is one on which work is being done, and nothing else.
type thread struct {
	used  func() time.Duration
	began time.Duration
}

// run does a part of the work, on the thread of the caller. A nil work measures nothing.
func (w *work) run(do func()) {
	if w == nil {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	used, release := w.threadTime()
	defer release()
	t := &thread{used, used()}
	w.mu.Lock()
	w.threads = append(w.threads, t)
	w.mu.Unlock()
	defer w.end(t)
	do()
}

func (w *work) end(t *thread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.past += t.used() - t.began
	w.threads = slices.DeleteFunc(w.threads, func(o *thread) bool { return o == t })
}

// used is the processor time that the work has taken.
func (w *work) used() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	sum := w.past
	for _, t := range w.threads {
		sum += t.used() - t.began
	}
	return sum
}
