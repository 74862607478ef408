package peer

import (
	"net"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// Peer is a caller whose process is held open for the life of its connection,
// so that its PID cannot come to name another process.
type Peer interface {
	Identity() caller.Caller
	// Alive returns nil while the process that opened the connection still runs.
	Alive() error
	// Close releases the hold on the process.
	Close() error
}

// Resolver names the caller behind an accepted connection.
type Resolver interface {
	// Resolve returns an error if the caller cannot be identified; the connection must then be refused.
	Resolve(conn net.Conn, at Arrival) (Peer, error)
}
