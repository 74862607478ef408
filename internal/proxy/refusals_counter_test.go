package proxy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// weighing is a log that keeps only lengths and counts.
type weighing struct {
	mu                 sync.Mutex
	fail               error
	bytes, single, all int
	summaries          []audit.Event
	events             []audit.Event // the first few that are no summaries
}

func (l *weighing) Append(_ context.Context, e *audit.Event) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return 0, l.fail
	}
	l.bytes += sizeOf(e)
	l.all += int(e.Count())
	if e.Stage == audit.StageSummary {
		l.summaries = append(l.summaries, *e)
	} else if l.single++; len(l.events) < 1000 {
		l.events = append(l.events, *e)
	}
	return uint64(l.single + len(l.summaries)), nil
}

// strangeConn is a connection of a container that no rule names.
func strangeConn(n int) *conn {
	identity := caller.Caller{
		Assurance: caller.AssurancePod, Process: caller.Process{PID: uint32(100 + n), Start: time.Now()}, User: caller.User{SID: "S-1-5-93-2-1"},
		Pod: caller.Pod{Namespace: "evil", Name: "pod", UID: "1"}, Container: caller.Container{ID: fmt.Sprint("container-", n), Name: "c"},
	}
	return &conn{pipe: strangersPipe, peer: &fakePeer{identity: identity, peers: &fakePeers{}}, id: "CONN", corr: &audit.Corr{Conn: "CONN"}}
}

// strangersPipe is a pipe whose access list names nobody.
var strangersPipe = &pipe{
	name: "csi-proxy-filesystem-v1", gv: apiserver.GroupVersion{Group: "filesystem", Version: "v1"},
	methods: map[string]string{"/v1.Filesystem/Rmdir": "Rmdir", "/v1.Filesystem/Mkdir": "Mkdir"},
	rules:   func(string, string) *Rules { return Listed(acl.DenyAll()) },
}

func denied(c *conn, method, path, reason string) lastRecord {
	e := strangersPipe.record(c, audit.TypeRequest, audit.StageResponseComplete, fmt.Sprint("ID-", method, path))
	e.What.Method, e.What.FullMethod = method, "/v1.Filesystem/"+method
	e.What.Targets = []audit.Target{{Kind: "path", Value: path}}
	e.Decision = &audit.Decision{Effect: audit.EffectDeny, Reason: reason, Policy: &audit.Policy{Name: "acl", Revision: "r"}}
	e.Outcome = &audit.Outcome{Result: audit.ResultDenied, Code: "PermissionDenied", Error: "denied " + e.ID}
	return lastRecord{e, c}
}

func testLedger(t *testing.T, log audit.Writer) *auditWriter {
	t.Helper()
	m, err := newMetrics(newPrivateRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return newAuditWriter(log, m, nopLog())
}

func TestAnHourOfRefusalsStaysWithinItsBudget(t *testing.T) {
	for _, tt := range []struct {
		name      string
		callers   int
		most      int
		reasons   int
		perSecond int
	}{
		{"one stranger with short records", 1, 10e6, 1, 4},
		{"one stranger with long records of many kinds", 1, 10e6, 4, 4},
		{"forty strangers", 40, 50e6, 1, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := &weighing{}
				l := testLedger(t, log)
				var callers []*conn
				for n := range tt.callers {
					callers = append(callers, strangeConn(n))
				}
				long := ""
				if tt.reasons > 1 {
					long = strings.Repeat("long\\", 1500)
				}
				refused := 0
				for second := range 3600 {
					for i := range tt.perSecond {
						refused++
						method := []string{"Mkdir", "Rmdir"}[i%2]
						_ = l.final(t.Context(), denied(callers[i%len(callers)], method, fmt.Sprintf(`C:\%s%d`, long, refused), fmt.Sprint("reason ", i%tt.reasons)))
					}
					if second%5 == 0 {
						_ = l.summarise(t.Context(), false)
					}
					time.Sleep(time.Second)
				}
				if log.bytes > tt.most {
					t.Errorf("%d bytes of records in an hour, at most %d", log.bytes, tt.most)
				}
				if log.single < 1000 {
					t.Errorf("only %d records of single refusals: the budget is not used", log.single)
				}
				if err := l.summarise(t.Context(), true); err != nil {
					t.Fatal(err)
				}
				if log.all != refused || l.unwritten() != 0 {
					t.Errorf("%d refusals, and records of %d; %d wait", refused, log.all, l.unwritten())
				}
				for _, b := range l.metrics.reconciler.accounts {
					if b.waiting != 0 || b.recorded != refused {
						t.Errorf("the reconciler has %+v", b)
					}
				}
			})
		})
	}
}

func TestTheFirstRefusalOfAKindHasItsRecordWhateverCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &weighing{}
		l := testLedger(t, log)
		c := strangeConn(1)
		for i := range 500 {
			_ = l.final(t.Context(), denied(c, "Mkdir", fmt.Sprint(i), "no rule"))
		}
		spent := log.single
		if spent != 60 {
			t.Fatalf("%d of 500 have records of their own, want 60", spent)
		}
		for range 3 {
			_ = l.final(t.Context(), denied(c, "Rmdir", "x", "no rule"))
			_ = l.final(t.Context(), denied(c, "Rmdir", "x", "another rule"))
		}
		if got := log.single - spent; got != 2 {
			t.Errorf("%d records of a new method and of a new reason, want 2", got)
		}
		// Names of methods that callers make up, and reasons that repeat what they sent, are not kinds of their own.
		before := log.single
		for i := range 1000 {
			_ = l.final(t.Context(), denied(c, fmt.Sprint("Made", i), "x", fmt.Sprint("reason with ", i)))
		}
		if got := log.single - before; got > maxReasons+1 {
			t.Errorf("%d records of made-up methods", got)
		}
	})
}

func TestASummarySaysWhoWhatAndHowOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &weighing{}
		l := testLedger(t, log)
		c, began := strangeConn(1), time.Now()
		for i := range 60 + 30 {
			_ = l.final(t.Context(), denied(c, "Mkdir", fmt.Sprint(`C:\`, i%50), "no rule"))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		if err := l.summarise(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if len(log.summaries) != 1 {
			t.Fatalf("%d summaries, want 1", len(log.summaries))
		}
		s := log.summaries[0]
		if s.Outcome.Count != 30 || s.What.Method != "Mkdir" || s.What.Pipe != strangersPipe.name || s.Outcome.Result != audit.ResultDenied || s.Decision.Reason != "no rule" {
			t.Errorf("%+v %+v", s.What, s.Outcome)
		}
		if s.Who.Container.ID != "container-1" || s.Who.Process == nil {
			t.Errorf("who: %+v", s.Who)
		}
		if len(s.What.Targets) != maxNamedTargets || s.What.MoreTargets != 30-maxNamedTargets {
			t.Errorf("%d targets and %d more, want %d and %d", len(s.What.Targets), s.What.MoreTargets, maxNamedTargets, 30-maxNamedTargets)
		}
		if first := s.Outcome.First.Sub(began); first < 0 || s.Time.Sub(s.Outcome.First) < 29*time.Millisecond {
			t.Errorf("first %v after the beginning, last %v later", first, s.Time.Sub(s.Outcome.First))
		}
	})
}

func TestStartingProcessesWinsNoBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &weighing{}
		l := testLedger(t, log)
		for i := range 300 {
			c := strangeConn(1) // the container is the same
			c.peer = &fakePeer{identity: caller.Caller{User: caller.User{SID: "S-1-5-21"}, Process: caller.Process{PID: uint32(i + 1)}}, peers: &fakePeers{}}
			_ = l.final(t.Context(), denied(c, "Mkdir", "x", "no rule"))
		}
		if log.single != 60 {
			t.Errorf("%d records, want 60", log.single)
		}
		if err := l.summarise(t.Context(), true); err != nil || len(log.summaries) != 1 {
			t.Fatalf("%d summaries, %v", len(log.summaries), err)
		}
		if who := log.summaries[0].Who; who.Process != nil || who.User.SID != "S-1-5-21" {
			t.Errorf("the summary of several processes names %+v", who)
		}
	})
}

func TestManyCallersTakeBoundedMemoryAndAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &weighing{}
		l := testLedger(t, log)
		refused := 0
		for n := range 3 * maxRefused {
			c := strangeConn(n)
			for i := range 3 {
				refused++
				_ = l.final(t.Context(), denied(c, []string{"Mkdir", "Rmdir"}[i%2], fmt.Sprint(i), "no rule"))
			}
		}
		if n := len(l.refusals.strangers.callers); n > maxRefused+1 {
			t.Errorf("%d callers are remembered", n)
		}
		kinds := 0
		for _, c := range l.refusals.strangers.callers {
			kinds += len(c.kinds)
		}
		if kinds != l.refusals.strangers.kinds || kinds > maxKinds+maxRefused+1 {
			t.Errorf("%d kinds are remembered, and %d counted", kinds, l.refusals.strangers.kinds)
		}
		if err := l.summarise(t.Context(), true); err != nil || log.all != refused {
			t.Errorf("%d refusals, records of %d, %v", refused, log.all, err)
		}
		time.Sleep(time.Hour)
		_ = l.summarise(t.Context(), false)
		if n := len(l.refusals.strangers.callers); n != 0 {
			t.Errorf("%d callers are remembered after an hour of quiet", n)
		}
	})
}

func TestRefusalsThatTheLogHasNoRoomForAreCountedAndHoldUpNoCall(t *testing.T) {
	for _, full := range []error{segment.ErrRefusals, segment.ErrFull} {
		log := &weighing{fail: fmt.Errorf("append: %w", full)}
		l := testLedger(t, log)
		c := strangeConn(1)
		for i := range 10 {
			var told *counted
			if err := l.final(t.Context(), denied(c, "Mkdir", fmt.Sprint(i), "no rule")); !errors.As(err, &told) || told.id == "" {
				t.Fatalf("%v: %v", full, err)
			}
		}
		if len(l.backlog) != 0 || l.unwritten() != 10 {
			t.Errorf("%v: %d wait in line, %d have no record", full, len(l.backlog), l.unwritten())
		}
		if err := l.summarise(t.Context(), true); err == nil || l.unwritten() != 10 {
			t.Errorf("%v: a summary is not taken: %v, %d have no record", full, err, l.unwritten())
		}
		log.fail = nil
		if _, err := l.intent(t.Context(), &audit.Event{Type: audit.TypeRequest, Stage: audit.StageRequestReceived, What: &audit.What{}}); err != nil {
			t.Errorf("%v: a call waits for refusals: %v", full, err)
		}
		if err := l.summarise(t.Context(), true); err != nil || l.unwritten() != 0 || len(log.summaries) != 1 || log.summaries[0].Outcome.Count != 10 {
			t.Errorf("%v: %v, %d have no record", full, err, l.unwritten())
		}
	}
}

// slowWeighing is a log that takes a second for what comes together.
type slowWeighing struct{ weighing }

func (l *slowWeighing) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	time.Sleep(time.Second)
	return l.weighing.Append(ctx, e)
}

func TestAStopWritesAFewSummariesTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &slowWeighing{}
		l := testLedger(t, log)
		const kinds = 1500
		refused := 0
		for n := range kinds {
			c := strangeConn(n)
			for i := range 2 + n%7 {
				e := denied(c, []string{"Mkdir", "Rmdir"}[n%2], fmt.Sprint(n, i), "no rule")
				l.refusals.turnedAway(e.refusal(), false)
				l.metrics.count(&e.Event)
				refused++
			}
		}
		began := time.Now()
		if err := l.summarise(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("a stop took %v for a log that takes a second for what comes together", took)
		}
		if n := len(log.summaries); n > 2*maxAtStop {
			t.Errorf("%d summaries of %d kinds", n, kinds)
		}
		if log.all != refused || l.unwritten() != 0 {
			t.Errorf("%d refusals, and records of %d; %d wait", refused, log.all, l.unwritten())
		}
		for _, s := range log.summaries {
			if s.What.Pipe != strangersPipe.name || s.Outcome.Result != audit.ResultDenied || s.Outcome.First.After(s.Time) {
				t.Fatalf("%+v %+v", s.What, s.Outcome)
			}
		}
		for _, b := range l.metrics.reconciler.accounts {
			if b.waiting != 0 || b.recorded != refused {
				t.Errorf("the reconciler has %+v", b)
			}
		}
	})
}

// A stranger that starts copies of its program under other names is a caller of its own each time.
func TestAnHourOfAnyNumberOfStrangersStaysWithinTheirBudget(t *testing.T) {
	for _, lasting := range []int{1, 60} { // seconds that a copy goes on
		synctest.Test(t, func(t *testing.T) {
			log := &weighing{}
			l := testLedger(t, log)
			const copies, hours = 2, 2
			long := strings.Repeat("long\\", 40)
			var hour [hours]int
			refused := 0
			for second := range hours * 3600 {
				for n := range copies {
					c := strangeConn(second/lasting*copies + n)
					for i := range 3 {
						refused++
						_ = l.final(t.Context(), denied(c, []string{"Mkdir", "Rmdir"}[i%2], fmt.Sprintf(`C:\%s%d`, long, refused), fmt.Sprint("reason ", second%4, i)))
					}
				}
				if second%5 == 0 {
					_ = l.summarise(t.Context(), false)
				}
				time.Sleep(time.Second)
				hour[second/3600] = log.bytes
			}
			if first, second := hour[0], hour[1]-hour[0]; first > 50e6 || second > 50e6 || first < 10e6 {
				t.Errorf("copies that last %d s: %d and %d bytes of records in an hour, at most %d", lasting, first, second, int(50e6))
			}
			before := log.bytes
			if err := l.summarise(t.Context(), true); err != nil || log.all != refused {
				t.Errorf("%d refusals, and records of %d: %v", refused, log.all, err)
			}
			if n := log.bytes - before; n > 2e6 {
				t.Errorf("a stop wrote %d bytes", n)
			}
		})
	}
}

// A summary holds what its refusals share, and never the text of one of them for all.
func TestASummaryHoldsNoReasonThatIsNotOfAll(t *testing.T) {
	c := strangeConn(1)
	one, other := denied(c, "Rmdir", "1", "C:\\a is not within its paths"), denied(c, "Rmdir", "2", "C:\\b is not within its paths")
	one.Outcome.Error, other.Outcome.Error = "a of "+one.ID, "b"
	other.Decision.Rule = "r"
	var s pendingSummary
	s.add(&one.Event)
	again := denied(c, "Rmdir", "1", one.Decision.Reason)
	again.ID, again.Outcome.Error = "other", "a of other"
	s.add(&again.Event)
	if e := s.event(); e.Decision.Reason != one.Decision.Reason || e.Outcome.Error != "a of "+e.ID {
		t.Errorf("of one: %+v %+v", e.Decision, e.Outcome)
	}
	for range 2 { // the second one is like the one before, and not like the first
		s.add(&other.Event)
		if e := s.event(); e.Decision.Reason != "" || e.Decision.Rule != "" || e.Outcome.Error != "" || e.Decision.Effect != audit.EffectDeny {
			t.Errorf("of several: %+v %+v", e.Decision, e.Outcome)
		}
	}
	undecided := other.Event
	undecided.Decision = nil
	if a, b := kindOfEvent(&other.Event).coarse(), kindOfEvent(&undecided).coarse(); a == b {
		t.Error("one that was not decided is of the same kind as one that was")
	}
}
