//go:build !windows && !linux

package peer

import (
	"errors"
	"net"
	"time"
)

// How to hold a caller's process is known for Windows and Linux alone.
func newResolver(*placer) Resolver { return refuser{} }

func now() time.Time { return time.Now() }

func clientPID(net.Conn) uint32 { return 0 }

// ServerPID is not known here.
func ServerPID(net.Conn) (uint32, error) { return 0, errors.ErrUnsupported }

type refuser struct{}

func (refuser) Resolve(net.Conn, Arrival) (Peer, error) {
	return nil, errors.ErrUnsupported
}
