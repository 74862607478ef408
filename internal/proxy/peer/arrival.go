package peer

import (
	"net"
	"time"
)

// Arrival is what was noted of a connection at its accept, before anything else was done.
type Arrival struct {
	// Time is when the connection was accepted, by the clock that stamps processes at their creation: a process that was
	// created later did not open the connection.
	Time time.Time
	// PID is the client's process as the kernel named it, 0 if it named none. It proves nothing before Resolve. Until then it
	// tells the connections of one process from those of others.
	PID uint32
}

// Dialled is the arrival of a connection that this process has just opened, and whose server is to be named. The kernel's word for a
// client would be this process.
func Dialled() Arrival { return Arrival{Time: now()} }

// Note is to be called as soon as conn was accepted.
func Note(conn net.Conn) Arrival {
	return Arrival{Time: now(), PID: clientPID(conn)}
}

// Accepted is a connection with its arrival.
type Accepted struct {
	net.Conn
	Arrival Arrival
}

// Arrived returns a connection as the system knows it, with the arrival that its listener noted. For a listener that notes
// none, that is now.
func Arrived(conn net.Conn) (net.Conn, Arrival) {
	if a, ok := conn.(Accepted); ok {
		return a.Conn, a.Arrival
	}
	return conn, Note(conn)
}
