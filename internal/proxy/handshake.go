package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	grpcpeer "google.golang.org/grpc/peer"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// handshake names the caller before gRPC reads its first byte. gRPC runs it in a goroutine of the connection's own.
type handshake struct {
	peers   peer.Resolver
	timeout time.Duration
}

var _ credentials.TransportCredentials = handshake{}

// ServerHandshake returns an error, and so ends the connection, if the caller cannot be identified.
func (h handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, ok := raw.(*conn)
	if !ok {
		return nil, nil, fmt.Errorf("connection of type %T did not come through our listener", raw)
	}
	held, err := h.resolve(c)
	if err != nil {
		c.because(audit.ResultRejected, "the caller cannot be identified: "+err.Error())
		return nil, nil, err
	}
	if !c.hold(held) {
		return nil, nil, errors.Join(errEnded, held.Close())
	}
	if err := c.seat(held.Identity()); err != nil {
		c.because(resultOf(err), statusOf(err).Message())
		return nil, nil, err
	}
	return c, authInfo{conn: c}, nil
}

// seat finds a place for a connection now that its caller is known. It waits for the record of one that gives way: of connections that
// have not been named there are few, so that few records wait for the log.
func (c *conn) seat(who caller.Caller) error {
	p, key, stranger := c.pipe, who.Principal(), c.isStranger()
	if !p.arrivals.admit(key, stranger, client{p.name, c.at.PID}) {
		return errCrowded
	}
	if err := c.isWelcome(); err != nil {
		return err
	}
	if err := c.count(who); err != nil {
		return err
	}
	victim, err := p.conns.identify(c, key, stranger)
	if victim != nil {
		victim.end(audit.ResultIdle, "gave way to a newer connection: nothing was going on, and its caller, or all strangers together, held as many as they may")
	}
	if err == nil && stranger {
		c.endIdle()
	}
	return err
}

// count counts the connection for its caller, as far as the access list bounds those.
func (c *conn) count(who caller.Caller) error {
	most := c.pipe.now().List.Connections(c.pipe.gv.Group, c.pipe.gv.Version, c.pipe.couldBe(who))
	release, ok := c.pipe.limiter.Connect(who.Principal(), c.pipe.name, most)
	if !ok {
		return fmt.Errorf("the caller holds %d connections to this pipe, the most that the access list lets it hold", most)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		release()
		return errEnded
	}
	c.release = release
	return nil
}

// resolve bounds the time that naming the caller takes. An answer that comes too late is closed.
func (h handshake) resolve(c *conn) (peer.Peer, error) {
	type answer struct {
		held peer.Peer
		err  error
	}
	answers := make(chan answer)
	ctx, cancel := context.WithTimeout(context.Background(), h.timeout)
	defer cancel()
	c.pipe.background.Go(func() {
		var a answer
		defer func() {
			if v := recover(); v != nil { // one strange connection must not end the others
				a = answer{err: fmt.Errorf("panic: %v", v)}
			}
			select {
			case answers <- a:
			case <-ctx.Done():
				if a.held != nil {
					_ = a.held.Close() // the handshake has ended without it
				}
			}
		}()
		a.held, a.err = h.peers.Resolve(c.Conn, c.at)
		if a.err == nil && a.held == nil {
			a.err = errors.New("no answer")
		}
	})
	select {
	case a := <-answers:
		return a.held, a.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no answer within %v", h.timeout)
	}
}

// hold keeps the caller's process for the life of the connection. It returns false if that is over.
func (c *conn) hold(p peer.Peer) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.peer = p
	return true
}

// ClientHandshake is not offered.
func (h handshake) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("the credentials of a pipe are for its server")
}

// Info describes the protocol to gRPC.
func (h handshake) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "pipe"}
}

// Clone returns a copy.
func (h handshake) Clone() credentials.TransportCredentials { return h }

// OverrideServerName does nothing: a pipe has no server name.
func (h handshake) OverrideServerName(string) error { return nil }

// authInfo carries the connection into the contexts of its requests.
type authInfo struct {
	credentials.CommonAuthInfo
	conn *conn
}

// AuthType implements credentials.AuthInfo.
func (authInfo) AuthType() string { return "pipe" }

// connFrom returns the connection that a context belongs to.
func connFrom(ctx context.Context) *conn {
	p, ok := grpcpeer.FromContext(ctx)
	if !ok {
		return nil
	}
	info, ok := p.AuthInfo.(authInfo)
	if !ok {
		return nil
	}
	return info.conn
}
