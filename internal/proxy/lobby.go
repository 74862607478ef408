package proxy

import "sync"

// lobby is where the connections of all pipes wait for their callers to be named. Naming takes work, and the container runtime may
// have to be asked, so they are few; they are divided among client processes, as the system named those at the accept.
type lobby struct {
	mu      sync.Mutex // guards what follows
	clients map[uint32]int
	waiting int
}

func newLobby() *lobby { return &lobby{clients: map[uint32]int{}} }

// enter says whether there is room for a connection of a client process: as long as it has fewer than a quarter of what is free. So
// however many processes come in a loop, each leaves most of what is free to others.
func (l *lobby) enter(client uint32) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if 4*l.clients[client] >= mostUnnamed-l.waiting {
		return false
	}
	l.clients[client]++
	l.waiting++
	return true
}

func (l *lobby) leave(client uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	count(l.clients, client, -1)
	l.waiting--
}
