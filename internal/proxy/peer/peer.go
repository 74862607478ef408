package peer

import (
	"net"
	"time"
)

// Process is the program at the other end of a pipe.
type Process struct {
	PID   uint32
	Start time.Time // creation time as the kernel reports it
	Exe   string    // full path of the image, in the host's own spelling
}

// User is the account that the process runs as.
type User struct {
	// SID is a Windows security identifier (S-1-5-18) or, elsewhere, "uid:" and a decimal user id.
	SID string
	// Name is the account's name for people to read; it may be empty and decides nothing.
	Name string
}

// Identity is what has been proven about a caller when its connection was accepted.
type Identity struct {
	Assurance Assurance
	Process   Process
	User      User
	// Container and Pod are set together, with AssurancePod.
	Container *Container
	Pod       *Pod
	// IsHost says that the runtime was asked after the process had connected, and that none of its containers holds it.
	IsHost bool
	// Doubt is, for people, what could not be found out: whether there is a container, or the pod's service account.
	Doubt string
}

// Peer is a caller whose process is held open for the life of its connection,
// so that its PID cannot come to name another process.
type Peer interface {
	Identity() Identity
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
