package proxy

import (
	"errors"
	"net"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// panickingPeers panics once for each token in first.
type panickingPeers struct {
	first chan struct{}
	next  *fakePeers
}

func (p panickingPeers) Resolve(c net.Conn, at peer.Arrival) (peer.Peer, error) {
	select {
	case <-p.first:
		panic("strange connection")
	default:
		return p.next.Resolve(c, at)
	}
}

// hangingPeers answers when it is released.
type hangingPeers struct{ release chan struct{} }

func (p hangingPeers) Resolve(net.Conn, peer.Arrival) (peer.Peer, error) {
	<-p.release
	return nil, errors.New("released")
}
