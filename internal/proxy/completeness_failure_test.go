package proxy

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/audit/segment"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

func breakDown(int, string) (int, error) { return 100, errInjected }

func TestALogToldToContinueLetsOperationsRunAndSaysHowManyRecordsItLost(t *testing.T) {
	d := newDisk()
	n := newNode(t, d, segment.Options{OnFailure: segment.Continue}, func(path string) {
		if strings.HasSuffix(path, `\2`) { // its intent is in the log
			d.failing(breakDown)
		}
	})
	n.settled = true // what is lost does not come out even, and that shows
	n.tell(6)
	for path, err := range n.told {
		if err != nil {
			t.Errorf("%s: told %v", path, err)
		}
	}
	if got := len(n.done()); got != 6 {
		t.Errorf("%d operations ran, want 6", got)
	}
	// Four calls left neither record; the end of the one before them waits, since its intent is there.
	if lost, waiting := n.metric(t, "pipeguard_audit_lost_total"), n.metric(t, "pipeguard_audit_backlog"); lost != 8 || waiting != 1 {
		t.Errorf("%v lost and %v waiting, want 8 and 1", lost, waiting)
	}
	d.failing(nil)
	n.tell(2)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	if got := n.metric(t, "pipeguard_audit_unreconciled"); got != 4 {
		t.Errorf("%v unreconciled, want 4", got)
	}
	events := n.fixture.log.all()
	report, err := recorded.Reconcile(recorded.All(events))
	if err != nil || len(report.Open) > 0 || report.FaultCount > 0 || report.Intents != 4 || report.Terminals != 4 {
		t.Errorf("%+v, %v", report, err)
	}
	var said uint64
	for _, e := range events {
		if e.Log != nil {
			said += e.Log.Lost
		}
	}
	if said != 9 { // the end that waits was let go once
		t.Errorf("the log says that it lost %d records, want 9", said)
	}
	if open := n.log.Stats().Open; open != 0 {
		t.Errorf("the log keeps room for %d operations that have ended", open)
	}
}

func TestALogThatContinuesNeverRefusesForTheEndsItLost(t *testing.T) {
	d := newDisk()
	n := newNode(t, d, segment.Options{OnFailure: segment.Continue, Admitted: 4}, func(string) {
		d.failing(breakDown) // each intent is in the log, and no end
	})
	n.settled = true
	for range 20 {
		n.tell(1)
		d.failing(nil)
	}
	for path, err := range n.told {
		if err != nil {
			t.Errorf("%s: told %v", path, err)
		}
	}
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	if report, err := recorded.Reconcile(recorded.All(n.fixture.log.all())); err != nil || len(report.Open) > 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestALogToldToShutDownAdmitsNothingAndSaysSoOnce(t *testing.T) {
	d := newDisk()
	var told atomic.Int64
	n := newNode(t, d, segment.Options{OnFailure: segment.Shutdown, OnShutdown: func(error) { told.Add(1) }}, func(path string) {
		if strings.HasSuffix(path, `\2`) {
			d.failing(breakDown)
		}
	})
	n.settled = true // the log is never written again
	n.tell(5)
	if got := len(n.done()); got != 2 {
		t.Errorf("%d operations ran, want 2", got)
	}
	if told.Load() != 1 {
		t.Errorf("the process was told to end %d times", told.Load())
	}
	if err := n.stop(); err == nil {
		t.Error("the server has stopped as if nothing were missing")
	}
	n.stop = func() error { return nil } // it was stopped
	_ = n.log.Close()

	// Whoever starts next finds the intent without its end.
	after := newNode(t, d.crash(), segment.Options{OnFailure: segment.Shutdown, OnShutdown: func(error) { t.Error("shut down again") }}, nil)
	orphans := after.fixture.log.await(t, 1, func(e audit.Event) bool { return e.Stage == audit.StageOrphaned })
	if len(orphans) != 1 || !strings.HasSuffix(orphans[0].What.Targets[0].Value, `\2`) {
		t.Errorf("orphans %+v", orphans)
	}
	after.settled = true // its records begin in another run
	after.tell(1)
	if err := after.told[`C:\var\lib\kubelet\1`]; err != nil {
		t.Error(err)
	}
}

func TestWhatACrashLeftOpenIsEndedBeforeAPipeOpens(t *testing.T) {
	d := newDisk()
	release := make(chan struct{})
	const calls = 8
	began := make(chan string, calls)
	n := newNode(t, d, segment.Options{}, func(path string) {
		began <- path
		<-release
	})
	answers := make(chan error, calls)
	for range calls {
		go func() {
			_, err := n.call()
			answers <- err
		}()
	}
	open := map[string]bool{}
	for range calls {
		open[<-began] = true
	}
	image := d.crash() // here the power fails
	close(release)
	for range calls {
		if err := <-answers; status.Code(err) != codes.OK {
			t.Error(err)
		}
	}

	var after *node
	checked := make(chan string, 1)
	after = newNode(t, image, segment.Options{}, nil, func(o *Options) {
		listen := o.Listen
		o.Listen = func(name string) (net.Listener, error) {
			missing := ""
			for path := range open {
				if !image.isDurable(`"stage":"Orphaned"`, strings.ReplaceAll(path, `\`, `\\`)) {
					missing += path + " "
				}
			}
			select {
			case checked <- missing:
			default:
			}
			return listen(name)
		}
	})
	after.settled = true // its records begin in another run
	if missing := <-checked; missing != "" {
		t.Errorf("when the first pipe opened, %s had no end on the disk", missing)
	}
	for _, e := range after.fixture.log.all() {
		if e.Stage == audit.StageOrphaned && (!open[e.What.Targets[0].Value] || e.IntentSeq == 0 || e.Outcome.Result != audit.ResultOrphaned || e.Who.User.SID != "S-1-5-18") {
			t.Errorf("%+v", e)
		}
	}
	after.tell(1)
	if err := after.told[`C:\var\lib\kubelet\1`]; err != nil {
		t.Error(err)
	}
}

func TestChaosComesOutEven(t *testing.T) {
	d := newDisk()
	var steps atomic.Int64
	d.failing(func(int, string) (int, error) { // now and then, and for a while
		if step := steps.Add(1); step > 20 && step%50 < 6 {
			return int(step), errInjected
		}
		return 0, nil
	})
	n := newNode(t, d, segment.Options{}, nil)
	done := make(chan struct{})
	const callers, each = 8, 30
	for i := range callers {
		go func() {
			defer func() { done <- struct{}{} }()
			c := n.client(t, "filesystem-v2alpha1")
			for j := range each {
				ctx, cancel := context.WithCancel(context.Background())
				switch j % 5 {
				case 0: // a caller that leaves
					go cancel()
				case 1: // a connection that breaks
					_ = c.Close()
					c = n.client(t, "filesystem-v2alpha1")
				case 2: // one that is opened and says nothing
					_ = n.raw(t, "filesystem-v1").Close()
				case 3: // a method that is not there
					_ = c.Invoke(ctx, "/v2alpha1.Filesystem/Nothing", &hub.MkdirRequest{}, &hub.MkdirResponse{})
				}
				_, _ = hub.NewFilesystemClient(c).Mkdir(ctx, &hub.MkdirRequest{Path: fmt.Sprintf(`C:\var\lib\kubelet\%d-%d`, i, j)})
				cancel()
			}
		}()
	}
	for range callers {
		<-done
	}
	d.failing(nil)
	n.tell(1)
	if err := n.stop(); err != nil {
		t.Error(err)
	}
	n.judge()
	n.settle(t)
	if steps.Load() < 100 || n.log.Stats().Poisoned == 0 || n.metric(t, "pipeguard_audit_errors_total") == 0 {
		t.Errorf("%d steps, %+v: there was no chaos", steps.Load(), n.log.Stats())
	}
	paths := map[string]int{}
	for _, e := range n.fixture.log.all() {
		if e.Type == audit.TypeRequest && e.Stage == audit.StageRequestReceived && len(e.What.Targets) > 0 {
			paths[e.What.Targets[0].Value]++
		}
	}
	for path, times := range n.done() {
		if paths[path] != 1 || times != 1 {
			t.Errorf("%s was done %d times and has %d intents", path, times, paths[path])
		}
	}
}

func TestTheCountShowsARequestThatLeavesNoRecord(t *testing.T) {
	f := start(t, "memory")
	f.settled = true
	f.handler(func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		f.log.failing(func(audit.Event) error { return errDisk })
		return answer(call)
	})
	_ = mkdir(within(t), f.client(t, "filesystem-v1"), `C:\a`)
	f.server.audit.mu.Lock()
	f.server.audit.backlog = nil // a fault that no run of the program makes
	f.server.audit.mu.Unlock()
	f.log.failing(nil)
	_ = f.stop()
	f.server.metrics.reconciler.change("csi-proxy-filesystem-v1", kindRequest, func(b *balance) { b.waiting-- })
	if n := f.metric(t, "pipeguard_audit_unreconciled"); n != 1 {
		t.Errorf("%v unreconciled, want 1", n)
	}
}
