package intake

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// peer is the other end of a connection.
type peer struct {
	net.Conn
	accepted net.Conn
}

// isClosed says whether the server has closed the connection.
func (p *peer) isClosed() bool {
	_ = p.SetReadDeadline(time.Now())
	_, err := p.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// callers is a listener at which connections from chosen addresses arrive.
type callers struct {
	net.Listener
	arriving chan net.Conn
}

func (c callers) Accept() (net.Conn, error) {
	conn, ok := <-c.arriving
	if !ok {
		return nil, net.ErrClosed
	}
	return conn, nil
}

type from struct {
	net.Conn
	address string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.address), Port: 4000} }

// hall is a bounded listener under test.
type hall struct {
	*Listener
	callers  callers
	accepted chan net.Conn
}

func newHall(t *testing.T, total, perAddress int) *hall {
	h := &hall{callers: callers{arriving: make(chan net.Conn)}, accepted: make(chan net.Conn, 100)}
	h.Listener = bound(h.callers, total, perAddress)
	go func() {
		for {
			c, err := h.Accept()
			if err != nil {
				return
			}
			h.State(c, http.StateNew)
			h.accepted <- c
		}
	}()
	t.Cleanup(func() { close(h.callers.arriving) })
	return h
}

func (h *hall) connect(address string) *peer {
	client, server := net.Pipe()
	h.callers.arriving <- from{server, address}
	synctest.Wait()
	p := &peer{Conn: client}
	select {
	case p.accepted = <-h.accepted:
	default:
	}
	return p
}

func TestConnectionsOfOneAddressAreBoundedAndTheLongestWaitingMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 10, 3)
		first, second, third := h.connect("10.0.0.1"), h.connect("10.0.0.1"), h.connect("10.0.0.1")
		if more := h.connect("10.0.0.1"); !more.isClosed() || first.isClosed() || h.Closed() != 1 || h.Open() != 3 {
			t.Fatalf("none of them has waited for long, and a fourth was let in: %d open, %d closed", h.Open(), h.Closed())
		}
		if other := h.connect("10.0.0.2"); other.isClosed() {
			t.Error("another address was turned away")
		}
		time.Sleep(youth)
		h.State(first.accepted, http.StateActive)
		if more := h.connect("10.0.0.1"); more.isClosed() || first.isClosed() || !second.isClosed() || third.isClosed() {
			t.Error("want the one closed that waits longest, and not the one that is being answered")
		}
		h.State(first.accepted, http.StateIdle) // from now on it waits
		time.Sleep(youth)
		if more := h.connect("10.0.0.1"); more.isClosed() || !third.isClosed() || first.isClosed() {
			t.Error("want the one closed that waits longest now")
		}
	})
}

func TestTheAddressWithMostConnectionsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 6, 4)
		lone := h.connect("10.0.0.1")
		var many []*peer
		for range 4 {
			many = append(many, h.connect("10.0.0.2"))
		}
		h.connect("10.0.0.3")
		time.Sleep(youth)
		if c := h.connect("10.0.0.4"); c.isClosed() || lone.isClosed() || !many[0].isClosed() || h.Open() != 6 {
			t.Errorf("want the oldest closed of the address that has most; %d open", h.Open())
		}
	})
}

func TestAClosedConnectionGivesItsRoomBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 2, 1)
		one := h.connect("10.0.0.1")
		for range 2 {
			if err := one.accepted.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if h.Open() != 0 || h.connect("10.0.0.1").isClosed() || !h.connect("10.0.0.1").isClosed() || h.Open() != 1 {
			t.Errorf("%d open", h.Open())
		}
	})
}

func TestOfAddressesThatAreAnsweredTheNextOneThatWaitsMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 6, 3)
		lone := h.connect("10.0.0.1")
		pair := []*peer{h.connect("10.0.0.2"), h.connect("10.0.0.2")}
		for range 3 {
			h.State(h.connect("10.0.0.3").accepted, http.StateActive)
		}
		time.Sleep(youth)
		if c := h.connect("10.0.0.4"); c.isClosed() || lone.isClosed() || !pair[0].isClosed() {
			t.Error("want the oldest closed of the address that has most of those that wait")
		}
	})
}

// A server that keeps connections has more of them than each of a thousand addresses that say nothing.
func TestConnectionsThatSaidNothingMakeRoomBeforeThoseOfAnAPIServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 20, 10)
		use := func(p *peer) {
			h.State(p.accepted, http.StateActive)
			h.State(p.accepted, http.StateIdle)
		}
		var kept []*peer
		for range 5 {
			kept = append(kept, h.connect("10.0.0.1"))
			use(kept[len(kept)-1])
		}
		for round := range 50 {
			time.Sleep(youth / 10)
			h.connect("10.0.1." + strconv.Itoa(round))
			h.connect("10.0.1." + strconv.Itoa(round))
			if round%10 == 0 {
				c := h.connect("10.0.0.1")
				if c.isClosed() {
					t.Fatalf("round %d: a connection of the server was turned away", round)
				}
				use(c)
				kept = append(kept, c)
				h.State(kept[0].accepted, http.StateActive)
				_ = kept[0].accepted.Close()
				kept = kept[1:]
			}
		}
		for i, c := range kept {
			if c.isClosed() {
				t.Errorf("connection %d of the server made room", i)
			}
		}
		if h.Open() != 20 || len(h.unused) == 0 {
			t.Errorf("%d open, unused %v", h.Open(), h.unused)
		}
	})
}

func TestOfConnectionsThatWereAllUsedTheOneMakesRoomThatWasUsedLongestAgo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 6, 4)
		use := func(p *peer) {
			h.State(p.accepted, http.StateActive)
			h.State(p.accepted, http.StateIdle)
		}
		var server, others []*peer
		for i := range 3 {
			server, others = append(server, h.connect("10.0.0.1")), append(others, h.connect("10.0.1."+strconv.Itoa(i)))
		}
		for i := range 3 {
			use(others[i])
			time.Sleep(youth)
			use(server[i])
		}
		if c := h.connect("10.0.0.2"); c.isClosed() || !others[0].isClosed() {
			t.Error("want the one closed that was used longest ago")
		}
		for _, c := range server {
			if c.isClosed() {
				t.Error("one of the server's made room, since it has most")
			}
		}
		for _, p := range append(server, others...) {
			_ = p.accepted.Close()
		}
		if h.Open() != 1 || len(h.unused) != 1 || len(h.counts) != 1 {
			t.Errorf("%d open, counts %v, unused %v", h.Open(), h.counts, h.unused)
		}
	})
}

func TestYoungConnectionsOfManyAddressesKeepNoOtherAddressOut(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	bounded := bound(server.Listener, 9, 4)
	server.Listener, server.Config.ConnState = bounded, bounded.State
	server.StartTLS()
	t.Cleanup(server.Close)
	dialer := func(source string) *net.Dialer { return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(source)}} }
	for range 3 {
		for _, source := range []string{"127.0.1.1", "127.0.1.2", "127.0.1.3"} {
			unfinished, err := dialer(source).DialContext(t.Context(), "tcp", bounded.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = unfinished.Close() })
		}
	}
	transport, ok := server.Client().Transport.(*http.Transport)
	if !ok {
		t.Fatal("the client's transport is another one")
	}
	transport.DialContext = dialer("127.0.1.4").DialContext
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatalf("an address with one connection was turned away, with %d open: %v", bounded.Open(), err)
	}
	if err := resp.Body.Close(); err != nil || bounded.Closed() != 1 {
		t.Errorf("%d closed, %v", bounded.Closed(), err)
	}
}
