package witness

import "sync"

// places counts the requests that wait for their rounds, by log.
type places struct {
	mu    sync.Mutex // guards the field below
	taken map[string]int
}

// take takes one of so many places of a log, unless all are taken.
func (p *places) take(origin string, most int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[origin] >= most {
		return false
	}
	if p.taken == nil {
		p.taken = map[string]int{}
	}
	p.taken[origin]++
	return true
}

func (p *places) giveBack(origin string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[origin]--; p.taken[origin] <= 0 {
		delete(p.taken, origin)
	}
}
