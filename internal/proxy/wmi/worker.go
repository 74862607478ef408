package wmi

import (
	"fmt"
	"runtime"
	"time"
)

// work takes calls until the pool is closed or one of them was given up.
func (p *Pool) work() {
	// COM belongs to the thread. It is not unlocked: so the thread ends with its worker.
	runtime.LockOSThread()
	w := &worker{open: p.open}
	for {
		j := p.next()
		if j == nil {
			break
		}
		value, err := w.attempt(j)
		if !p.settle(j, value, err) {
			// Another worker has this one's place. It counts as stuck until its objects are released too.
			w.close()
			p.mu.Lock()
			p.stuck--
			p.mu.Unlock()
			return
		}
	}
	w.close()
	p.mu.Lock()
	p.lose()
	p.mu.Unlock()
}

// next waits for a call and begins it. It returns nil when the pool is closed.
func (p *Pool) next() *job {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) == 0 {
		if p.closed {
			return nil
		}
		p.idle++
		p.wake.Wait()
		p.idle--
	}
	j := p.queue[0]
	p.queue = p.queue[1:]
	j.state, j.begun = running, time.Now()
	j.timer = time.AfterFunc(p.options.Stuck, func() { p.giveUp(j) })
	return j
}

// settle hands a result over. It reports false if the call was given up meanwhile.
func (p *Pool) settle(j *job, value any, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	j.timer.Stop()
	if j.state != running {
		return false
	}
	j.finish(value, err)
	return true
}

// worker keeps its thread's session from call to call.
type worker struct {
	open func() (session, error)
	held session
}

// attempt runs a call in a session. After a panic nothing is known of the session, so the next call gets another.
// What was panicked with may hold parameters and is not repeated, unless the runtime said it.
func (w *worker) attempt(j *job) (value any, err error) {
	defer func() {
		reason := recover()
		if reason == nil {
			return
		}
		value, err = nil, fmt.Errorf("%s: panic (%T), %w", j.op, reason, ErrOutcome)
		if fault, ok := reason.(runtime.Error); ok {
			err = fmt.Errorf("%w: %w", err, fault)
		}
		w.close()
	}()
	if w.held == nil {
		held, err := w.open()
		if err != nil {
			return nil, fmt.Errorf("%s: never begun: %w", j.op, err)
		}
		w.held = held
	}
	return j.run(w.held)
}

// close ends the session, if there is one.
func (w *worker) close() {
	held := w.held
	w.held = nil
	if held == nil {
		return
	}
	defer func() { _ = recover() }() // it is given up either way
	held.close()
}
