package proxy

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// longest is the longest path that Windows gives a program, about.
const longest = 30_000

// farAway is a stranger whose program has a path of some length.
func farAway(account, length int) caller.Caller {
	return caller.Caller{
		Assurance: caller.AssuranceProcess, User: caller.User{SID: fmt.Sprint("uid:", account)},
		Process: caller.Process{PID: 7, Start: time.Now(), Exe: "/" + strings.Repeat("\x01", length) + fmt.Sprint(account)},
	}
}

// gRPC keeps an answer, and its request, until the client has taken it. So a stranger's request is in progress until then.
func TestUnreadAnswersOfStrangersCountAgainstTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dial := startDoors(t, farAway(1, 4000))
		inProgress := func() int {
			s := f.server.pipes[0].shares
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.byStrangers
		}
		for range 4 {
			c, said := dial(t), &memoryConn{}
			w := wireOver(t, said)
			for range 12 { // more answers than there is room for
				for range 20 {
					w.request(false)
					w.data(10, 4, 'C', ':', '\\', 'a')
				}
				if _, err := c.Write(said.buffer.Bytes()); err != nil {
					t.Fatal(err)
				}
				said.buffer.Reset()
				time.Sleep(2 * answerTime)
				synctest.Wait()
			}
		}
		if n := inProgress(); n < strangersRequests/2 || n > strangersRequests {
			t.Errorf("%d requests count as in progress, whose answers nobody reads", n)
		}
		kept := f.client(t, "filesystem-v1")
		if err := mkdirs["v1"](within(t), kept); err != nil {
			t.Errorf("a driver beside them: %v", err)
		}
		time.Sleep(2 * strangerTakes)
		if n := inProgress(); n != 0 {
			t.Errorf("%d requests count as in progress when their connections have ended", n)
		}
		_, _ = kept.Close(), f.stop()
	})
}

// However many strangers there are and however long the texts that they choose, what is remembered of them is bounded.
func TestWhatIsRememberedOfStrangersIsBounded(t *testing.T) {
	const mostBytes = 16 << 20
	idle := heldBytes()
	l, s, calls := testLedger(t, &weighing{}), newArrivalLimiter(), acl.NewLimiter(0)
	long := strings.Repeat("\x01", 8000)
	for account := range maxRefused + maxRefused/2 {
		caller := farAway(account, longest)
		key := caller.Principal()
		if key == farAway(account+1, longest).Principal() {
			t.Fatal("two programs are one caller")
		}
		s.admit(key, true, client{"a", uint32(account)}) //nolint:gosec // below 2^32
		calls.Call(key, "", access.Limits{CallsPerSecond: 1})
		for n := range 3 {
			e := audit.Event{
				Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Now(), ID: "id", Who: audit.WhoOf(caller),
				What:     &audit.What{Pipe: "csi-proxy-disk-v1", Method: long, FullMethod: long, Targets: []audit.Target{{Kind: "path", Value: fmt.Sprint(n, long[:200])}}},
				Decision: &audit.Decision{Effect: audit.EffectDeny, Reason: fmt.Sprint(n, long)},
				Outcome:  &audit.Outcome{Result: audit.ResultDenied, Error: fmt.Sprint(n, long)},
			}
			_ = l.refuse(t.Context(), lastRecord{Event: e, conn: nil})
			r := refusal{who: key, isStranger: true, event: &e, kind: kindOfEvent(&e)}
			l.refusals.enter(r, func() int { return sizeOf(&e) })
		}
	}
	if now := heldBytes(); now > idle+mostBytes {
		t.Errorf("%d KiB are held", (now-idle)>>10)
	}
	if n := l.unwritten(); n == 0 {
		t.Error("nothing is counted")
	}
	if n := s.each.Call(farAway(0, longest).Principal(), "", access.Limits{CallsPerSecond: 1}); n && calls == nil {
		t.Error("the limiters are gone")
	}
}

// The length of a refusal's record is found out for each refusal, so it must not take memory in proportion to what the caller sent.
func TestTheLengthOfARecordIsFoundOutInLittleMemory(t *testing.T) {
	e := audit.Event{
		Type: audit.TypeRequest, Stage: audit.StageResponseComplete, Time: time.Now(), ID: "id", Who: audit.WhoOf(farAway(1, longest)),
		What: &audit.What{Pipe: "csi-proxy-disk-v1", FullMethod: strings.Repeat("\u202e", 1000)},
	}
	result := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if n := sizeOf(&e); n > audit.MaxRecord+recordOverhead {
				b.Fatalf("a record of %d bytes", n)
			}
		}
	})
	if n := result.AllocedBytesPerOp(); n > 8<<10 {
		t.Errorf("%d bytes are allocated for each", n)
	}
}
