package proxy

import (
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// notedPeers remembers the arrivals that it was told.
type notedPeers struct {
	*fakePeers

	mu    sync.Mutex // guards times
	times []time.Time
}

func (p *notedPeers) Resolve(c net.Conn, at peer.Arrival) (peer.Peer, error) {
	p.mu.Lock()
	p.times = append(p.times, at.Time)
	p.mu.Unlock()
	return p.fakePeers.Resolve(c, at)
}

// tardy notes arrivals as the listeners of pipes do, and takes its time afterwards.
type tardy struct {
	net.Listener
	by time.Duration
}

func (l tardy) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	accepted := peer.Accepted{Conn: conn, Arrival: peer.Arrival{Time: time.Now()}} // the test's clock
	time.Sleep(l.by)
	return accepted, nil
}

// A process that was created between the accept and a later look at the clock would pass for the caller.
func TestTheTimeOfTheAcceptIsReadAtTheAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const late = 1500 * time.Millisecond
		peers := &notedPeers{}
		f := start(t, "memory", func(o *Options) {
			peers.fakePeers = o.Peers.(*fakePeers)
			o.Peers = peers
			listen := o.Listen
			o.Listen = func(name string) (net.Listener, error) {
				l, err := listen(name)
				return tardy{l, late}, err
			}
		})
		dialled := time.Now()
		c := f.client(t, "filesystem-v1")
		if err := mkdirs["v1"](within(t), c); err != nil {
			t.Fatal(err)
		}
		if len(peers.times) != 1 || !peers.times[0].Equal(dialled) {
			t.Errorf("accepted at %v by what the resolver was told, at %v in fact", peers.times, dialled)
		}
		_ = c.Close()
		record := f.log.await(t, 1, connection)[0]
		if took := time.Duration(record.Outcome.LatencyUS) * time.Microsecond; took < late {
			t.Errorf("the record counts from another time: it says that the connection lasted %v", took)
		}
		_ = f.stop()
	})
}
