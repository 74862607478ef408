package proxy

import (
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// outsider is a container that no rule of the tests names.
func outsider(id string) caller.Caller {
	who := container(id)
	who.User.SID, who.Process.Exe, who.Pod.Namespace = "S-1-5-93-2-2", `C:\outside\app.exe`, "tenant"
	return who
}

// unfinished sends the headers of a request and all of its message but the last byte.
func (w *wire) unfinished() error {
	w.request(false)
	message := binary.BigEndian.AppendUint32([]byte{0}, maxMessage)
	message = append(message, make([]byte, maxMessage-1)...)
	for len(message) > 0 {
		part := message[:min(len(message), 16<<10)]
		message = message[len(part):]
		if err := w.framer.WriteData(w.stream-2, false, part); err != nil {
			return err
		}
	}
	return nil
}

// settled returns when the server has dealt with all that was sent, or has closed.
func (w *wire) settled() {
	if w.framer.WritePing(false, [8]byte{1}) != nil {
		return
	}
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		frame, err := w.framer.ReadFrame()
		if p, ok := frame.(*http2.PingFrame); err != nil || ok && p.IsAck() {
			return
		}
	}
}

// held is what the heap holds, without garbage.
func heldBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// 16 connections of 64 requests each, of which the last byte never comes.
func TestUnfinishedMessagesHoldLittle(t *testing.T) {
	const mostBytes = 32 << 20 // the heap grows to twice of what it holds
	for name, who := range map[string]caller.Caller{"of a stranger": outsider("a"), "of a caller that a rule names": container("a")} {
		t.Run(name, func(t *testing.T) {
			f, dial := startDoors(t, who)
			f.mustWork(t)
			idle := heldBytes()
			var open []net.Conn
			for range 16 {
				c := dial(t)
				open = append(open, c)
				w := wireOver(t, c)
				for range maxStreams {
					if w.unfinished() != nil {
						break
					}
				}
				w.settled()
			}
			if now := heldBytes(); now > idle+mostBytes {
				t.Errorf("%d KiB are held, %d KiB of them since the attack", now>>10, (now-idle)>>10)
			}
			for i := range 20 { // and the driver, beside it
				c := f.client(t, "filesystem-v1")
				if err := mkdirs["v1"](within(t), c); err != nil {
					t.Fatalf("call %d of a driver: %v", i, err)
				}
				_ = c.Close()
			}
			for _, c := range open {
				_ = c.Close()
			}
		})
	}
}

func TestStrangersTogetherHaveOneShareOfRequests(t *testing.T) {
	f, dial := startDoors(t, outsider("a"))
	for range 2 {
		w := wireOver(t, dial(t))
		w.drain()
		for range strangersRequests * 3 / 4 {
			w.request(false) // no message follows
		}
	}
	refused := f.log.await(t, strangersRequests/2, terminal)
	for _, e := range refused {
		if e.Outcome.Code != "ResourceExhausted" || !strings.Contains(e.Outcome.Error, "no rule names") || e.What.FullMethod != "/v1.Filesystem/Mkdir" {
			t.Errorf("%+v, outcome %+v", e.What, e.Outcome)
		}
	}
	f.mustWork(t)
}

func TestACallerHasOneShareOfRequestsOverAllPipes(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.Operations, o.Limits.Waiting = 1, 1 })
	most := 1 + spareRequests
	for _, gv := range []string{"filesystem-v1", "filesystem-v1beta2"} {
		w := wireOver(t, f.raw(t, gv))
		w.drain()
		for range most/2 + 5 {
			w.request(false, ":path", "/"+strings.TrimPrefix(gv, "filesystem-")+".Filesystem/Mkdir")
		}
	}
	refused := f.log.await(t, 2*(most/2+5)-most, terminal)
	for _, e := range refused {
		if e.Outcome.Code != "ResourceExhausted" || !strings.Contains(e.Outcome.Error, "the caller has") {
			t.Errorf("outcome %+v", e.Outcome)
		}
	}
	f.peers.set(func(p *fakePeers) { p.identity.Process.Exe = `C:\driver\other.exe` })
	f.mustWork(t)
}

func TestARequestThatIsNotWholeInTimeEnds(t *testing.T) {
	for name, sent := range map[string]func(w *wire){
		"headers alone": func(*wire) {},
		"half a prefix": func(w *wire) { w.must(w.framer.WriteData(1, false, []byte{0, 0})) },
		"all but a byte": func(w *wire) {
			w.must(w.framer.WriteData(1, false, []byte{0, 0, 0, 0, 6, 10, 4, 'C', ':', '\\'}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, "memory")
				w, began := f.wire(t), time.Now()
				w.drain()
				w.request(false)
				sent(w)
				e := f.log.await(t, 1, terminal)[0]
				if took := time.Since(began); took != wholeWithin {
					t.Errorf("it ended after %v", took)
				}
				if e.Outcome.Result != audit.ResultRejected || e.Outcome.Code != "DeadlineExceeded" || !strings.Contains(e.Outcome.Error, "not whole") {
					t.Errorf("outcome %+v", e.Outcome)
				}
				w.request(false)
				w.data(10, 4, 'C', ':', '\\', 'a') // the connection is as good as before
				f.log.await(t, 1, func(e audit.Event) bool { return terminal(e) && e.Outcome.Result == audit.ResultOK })
				time.Sleep(2 * wholeWithin) // nothing is cut off later
				if n := f.ran.Load(); n != 1 {
					t.Errorf("%d operations ran", n)
				}
				_ = w.conn.Close()
				_ = f.stop()
			})
		})
	}
}

func TestAWholeRequestMayTakeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory")
		g := newTurnstile(f)
		c := f.client(t, "filesystem-v1")
		ended := make(chan error, 2)
		for range 2 { // one runs, one waits
			go func() { ended <- mkdirs["v1"](t.Context(), c) }()
		}
		<-g.began
		time.Sleep(time.Minute)
		close(g.door(`C:\a`))
		if err := errors.Join(<-ended, <-ended); err != nil {
			t.Error(err)
		}
		_, _ = c.Close(), f.stop()
	})
}

// A message may be announced, too: what is too long is refused before it is read.
func TestTheLongestPathsFitWellIntoAMessage(t *testing.T) {
	long := `C:\` + strings.Repeat("\uffff", safepath.MaxLength) // one more than is carried out, three bytes each
	request := &v1.CreateSymlinkRequest{SourcePath: long, TargetPath: long}
	if n := proto.Size(protoadapt.MessageV2Of(request)); n > maxMessage/4 {
		t.Errorf("%d bytes", n)
	}
	f := start(t, "unix", func(o *Options) {
		rules := listed(t, acl.Spec{Rules: []acl.Rule{{Name: "r", Pipes: []string{"*"}, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}}}}, nil)
		o.Rules = func(string, string) *Rules { return rules }
	})
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	if _, err := c.CreateSymlink(within(t), request); err != nil {
		t.Errorf("paths of %d characters do not get to what judges them: %v", safepath.MaxLength+3, err)
	}
	request.SourcePath = `C:\` + strings.Repeat("x", maxMessage)
	if _, err := c.CreateSymlink(within(t), request); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message that is too long: %v", err)
	}
	refused := f.log.await(t, 1, func(e audit.Event) bool { return terminal(e) && e.Outcome.Result == audit.ResultRejected })[0]
	if refused.What.Method != "CreateSymlink" {
		t.Errorf("recorded as %+v", refused.What)
	}
}

// An account that runs several copies of its program is as many callers.
func TestTheCallersOfOneAccountDoNotHoldAllCalls(t *testing.T) {
	of := func(user string, program int) caller.Principal {
		return caller.Principal{User: user, Exe: strconv.Itoa(program)}
	}
	for name, passed := range map[string]bool{"forwarded": true, "others": false} {
		t.Run(name, func(t *testing.T) {
			s := newShares(4)
			total, caller := s.total, s.caller
			if passed {
				total, caller = forwardedTotal, forwardedRequests
			}
			var release []func()
			held := func(user string) (n int) {
				for i := range 2 * total {
					if r, err := s.take(of(user, i/caller), false, passed); err == nil {
						release, n = append(release, r), n+1
					} else if status.Code(err) != codes.ResourceExhausted {
						t.Fatal(err)
					}
				}
				return n
			}
			if first, second := held("S-1-5-80-1"), held("S-1-5-80-2"); first != ofGroup(total) || second != total-ofGroup(total) {
				t.Errorf("the programs of one account hold %d calls, and then those of another %d, of %d", first, second, total)
			}
			for _, r := range release {
				r()
			}
			if len(s.byGroup)+len(s.byCaller)+s.used+s.passed != 0 {
				t.Errorf("what is over is counted: %+v", s)
			}
		})
	}
}
