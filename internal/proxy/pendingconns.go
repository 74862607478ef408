package proxy

import "sync"

// pendingConns are the connections of all pipes whose callers are not named yet. Naming takes work, and the container runtime may
// have to be asked, so they are few; they are divided among client processes, as the system named those at the accept.
type pendingConns struct {
	mu      sync.Mutex // guards the fields below
	clients map[uint32]int
	waiting int
}

func newPendingConns() *pendingConns { return &pendingConns{clients: map[uint32]int{}} }

// enter says whether there is room for a connection of a client process: as long as it has fewer than a quarter of what is free. So
// however many processes come in a loop, each leaves most of what is free to others.
func (l *pendingConns) enter(client uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if 4*l.clients[client] >= mostUnnamed-l.waiting {
		return false
	}
	l.clients[client]++
	l.waiting++
	return true
}

func (l *pendingConns) leave(client uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count(l.clients, client, -1)
	l.waiting--
}
