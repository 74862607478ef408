package pipe

import (
	"net"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// noting is a listener that notes the arrival of each connection before anything else is done with it, so that later waits do not
// change the time of the accept. Accept returns a peer.Accepted.
type noting struct{ net.Listener }

// Accept implements net.Listener.
func (l noting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return peer.Accepted{Conn: conn, Arrival: peer.Note(conn)}, nil
}
