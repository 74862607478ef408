package proxy

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

func TestNoIntentNoOperation(t *testing.T) {
	f := start(t, "unix")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	f.log.failing(func(audit.Event) error { return errDisk })
	for range 3 {
		_, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`})
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "audit_unavailable") {
			t.Errorf("got %v", err)
		}
	}
	if f.ran.Load() != 0 {
		t.Fatal("an operation ran without an intent")
	}
	f.log.failing(nil)
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`}); err != nil {
		t.Errorf("when the log works again: %v", err)
	}
	var results []string
	for _, e := range f.log.await(t, 4, terminal) {
		results = append(results, e.Outcome.Result)
	}
	if got := strings.Join(results, " "); got != "rejected rejected rejected ok" {
		t.Errorf("terminal records: %s", got)
	}
}

func TestDenialsWaitForTheLog(t *testing.T) {
	f := start(t, "unix")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	f.log.failing(func(audit.Event) error { return errDisk })
	if _, err := c.Rmdir(within(t), &v1.RmdirRequest{Path: `C:\a`}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("got %v", err)
	}
	if n := f.becomes(t, "pipeguard_audit_backlog", 1); n != 1 {
		t.Errorf("backlog %v, want 1", n)
	}
	f.log.failing(nil)
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`}); err != nil {
		t.Fatal(err)
	}
	// What happened first stands first.
	events := f.log.await(t, 3, func(e audit.Event) bool { return e.Type == audit.TypeRequest })
	if events[0].What.Method != "Rmdir" || events[0].Outcome.Result != audit.ResultDenied || events[1].Stage != audit.StageRequestReceived {
		t.Errorf("first %+v, second %s", events[0].What, events[1].Stage)
	}
	if n := f.becomes(t, "pipeguard_audit_backlog", 0); n != 0 {
		t.Errorf("backlog %v, want 0", n)
	}
}

func TestLostTerminalRecordIsInternalAndStopsAdmission(t *testing.T) {
	f := start(t, "unix")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		f.log.failing(func(audit.Event) error { return errDisk })
		return answer(call)
	})
	_, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "audit id") {
		t.Errorf("got %v", err)
	}
	id := f.log.all()[0].ID
	if !strings.Contains(err.Error(), id) {
		t.Errorf("%q does not name record %s", err, id)
	}

	// Only the record that waits can be written, and it fails: nothing new begins, although an intent could be written.
	f.log.failing(func(e audit.Event) error {
		if terminal(e) {
			return errDisk
		}
		return nil
	})
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\b`}); status.Code(err) != codes.Unavailable {
		t.Errorf("while a terminal record is missing: %v", err)
	}
	if n := f.ran.Load(); n != 1 {
		t.Errorf("%d operations ran, want 1", n)
	}
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return answer(call) })
	f.log.failing(nil)
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\c`}); err != nil {
		t.Errorf("when the log works again: %v", err)
	}
	first := f.log.await(t, 3, terminal)[0]
	if first.ID != id || first.Outcome.Result != audit.ResultOK || first.IntentSeq != 1 {
		t.Errorf("the record that waited: %+v %+v", first, first.Outcome)
	}
}

func TestPanicWhileTheLogFailsIsRecordedLater(t *testing.T) {
	f := start(t, "unix")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	f.handler(func(context.Context, *apiserver.Call) (proto.Message, error) {
		f.log.failing(func(audit.Event) error { return errDisk })
		panic("x")
	})
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	f.log.failing(nil)
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return answer(call) })
	f.mustWork(t)
	if first := f.log.await(t, 1, terminal)[0]; first.Stage != audit.StagePanic {
		t.Errorf("the record that waited: %s", first.Stage)
	}
}

func TestCancelledCallerDoesNotCancelTheRecord(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Audit = strictLog{o.Audit} })
	ctx, cancel := context.WithCancel(within(t))
	f.handler(func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		cancel()
		<-ctx.Done()
		return answer(call)
	})
	_ = lookAt(ctx, f.client(t, "filesystem-v1")) // the client has gone: it sees its own cancellation
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Result != audit.ResultOK {
		t.Errorf("outcome %+v", e.Outcome)
	}
}

// strictLog refuses a context that has ended, as a segment.Writer does.
type strictLog struct{ audit.Writer }

func (l strictLog) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return l.Writer.Append(ctx, e)
}

func TestFullBacklogCountsWhatIsLost(t *testing.T) {
	f := start(t, "memory")
	m, err := newMetrics(newPrivateRegistry())
	if err != nil {
		t.Fatal(err)
	}
	f.log.failing(func(audit.Event) error { return errDisk })
	l := newAuditWriter(f.log, m, nopLog())
	for i := range maxBacklog + 3 {
		e := audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: string(rune('a' + i)), What: &audit.What{}, Outcome: &audit.Outcome{}}
		if err := l.final(t.Context(), lastRecord{Event: e}); err == nil {
			t.Fatal("no error")
		}
	}
	if n := len(l.backlog); n != maxBacklog {
		t.Errorf("backlog %d, want %d", n, maxBacklog)
	}
	if n := value(t, m.auditLost); n != 3 {
		t.Errorf("%v lost, want 3", n)
	}
	// Whoever floods a log that fails must not push out the end of an operation that ran.
	ran := audit.Event{Type: audit.TypeRequest, Stage: audit.StageResponseComplete, ID: "ran", IntentSeq: 1, What: &audit.What{}, Outcome: &audit.Outcome{}}
	if err := l.final(t.Context(), lastRecord{Event: ran}); err == nil {
		t.Fatal("no error")
	}
	if last := l.backlog[len(l.backlog)-1]; last.ID != "ran" {
		t.Errorf("the end of an operation is lost; the last record that waits is %q", last.ID)
	}
	if _, err := l.intent(t.Context(), &audit.Event{}); err == nil {
		t.Error("an intent is admitted before the backlog is written")
	}
	f.log.failing(nil)
}
