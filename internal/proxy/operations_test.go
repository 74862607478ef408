package proxy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/order"
)

// lookAt is a call that changes nothing.
func lookAt(ctx context.Context, c grpc.ClientConnInterface) error {
	_, err := v1.NewFilesystemClient(c).PathExists(ctx, &v1.PathExistsRequest{Path: `C:\a`})
	return err
}

func mkdir(ctx context.Context, c grpc.ClientConnInterface, path string) error {
	_, err := v1.NewFilesystemClient(c).Mkdir(ctx, &v1.MkdirRequest{Path: path})
	return err
}

func TestWriteGoesOnWhenItsCallerLeaves(t *testing.T) {
	f := start(t, "unix")
	g := newTurnstile(f)
	ctx, cancel := context.WithCancel(within(t))
	left := make(chan error, 1)
	c := f.client(t, "filesystem-v1")
	go func() { left <- mkdir(ctx, c, `C:\a`) }()
	g.await(t, `C:\a`)
	cancel()
	if err := <-left; status.Code(err) != codes.Canceled {
		t.Errorf("the caller saw %v", err)
	}
	_ = c.Close()
	f.log.await(t, 1, connection) // the connection is over, the operation is not
	if n := len(f.log.await(t, 0, terminal)); n != 0 {
		t.Errorf("%d records of an end while the operation runs", n)
	}
	close(g.door(`C:\a`))
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Result != audit.ResultOK || !e.Outcome.CallerLeft || e.IntentSeq == 0 {
		t.Errorf("%+v", e.Outcome)
	}
}

func TestPanicOfAnOperationWhoseCallerHasLeftIsRecorded(t *testing.T) {
	f := start(t, "unix")
	began, goOn := make(chan struct{}), make(chan struct{})
	f.handler(func(context.Context, *apiserver.Call) (proto.Message, error) {
		close(began)
		<-goOn
		panic("secret")
	})
	ctx, cancel := context.WithCancel(within(t))
	left := make(chan error, 1)
	go func() { left <- mkdir(ctx, f.client(t, "filesystem-v1"), `C:\a`) }()
	<-began
	cancel()
	<-left
	close(goOn)
	if e := f.log.await(t, 1, terminal)[0]; e.Stage != audit.StagePanic || strings.Contains(e.Outcome.Error, "secret") {
		t.Errorf("%s %+v", e.Stage, e.Outcome)
	}
}

func TestOperationsOnOnePathFollowEachOther(t *testing.T) {
	f := start(t, "unix")
	g := newTurnstile(f)
	c := f.client(t, "filesystem-v1")
	old := v1alpha1.NewFilesystemClient(f.client(t, "filesystem-v1alpha1"))
	answers := make(chan error, 8)
	go func() { answers <- mkdir(within(t), c, `C:\a\b`) }()
	g.await(t, `C:\a\b`)
	// The same path by another version and in other case, its parent, a look into it: all wait. A neighbour does not.
	go func() {
		_, err := old.Mkdir(within(t), &v1alpha1.MkdirRequest{Path: `c:\A\B`})
		answers <- err
	}()
	go func() { answers <- mkdir(within(t), c, `C:\a`) }()
	go func() {
		_, err := v1.NewFilesystemClient(c).PathExists(within(t), &v1.PathExistsRequest{Path: `C:\a\b\c`})
		answers <- err
	}()
	f.waiting(t, 3)
	go func() { answers <- mkdir(within(t), c, `C:\ab`) }()
	g.await(t, `C:\ab`)
	for _, path := range []string{`C:\a\b`, `c:\A\B`, `C:\a`, `C:\a\b\c`, `C:\ab`} {
		close(g.door(path))
	}
	for range 5 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

// waiting waits until n calls stand in the queue.
func (f *fixture) waiting(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); f.server.pipes[0].queue.Load().Waiting != n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%+v, want %d waiting", f.server.pipes[0].queue.Load(), n)
		}
	}
}

func TestCallerThatLeavesTheQueueHasDoneNothing(t *testing.T) {
	f := start(t, "unix")
	g := newTurnstile(f)
	c := f.client(t, "filesystem-v1")
	first := make(chan error, 1)
	go func() { first <- mkdir(within(t), c, `C:\a`) }()
	g.await(t, `C:\a`)
	ctx, cancel := context.WithTimeout(within(t), 100*time.Millisecond)
	defer cancel()
	if err := mkdir(ctx, c, `C:\a`); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	e := f.log.await(t, 1, terminal)[0]
	if e.Outcome.Result != audit.ResultRejected || e.IntentSeq != 0 || !strings.Contains(e.Outcome.Error, "not begun: Mkdir (audit id ") {
		t.Errorf("%+v", e.Outcome)
	}
	close(g.door(`C:\a`))
	if err := <-first; err != nil {
		t.Error(err)
	}
	if n := f.ran.Load(); n != 1 {
		t.Errorf("%d operations ran", n)
	}
}

func TestCallsBeyondTheQueueAreRefused(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.Operations, o.Limits.Waiting = 1, 3 })
	g := newTurnstile(f)
	c := f.client(t, "filesystem-v1")
	answers := make(chan error, 2)
	go func() { answers <- mkdir(within(t), c, `C:\a`) }()
	g.await(t, `C:\a`)
	go func() { answers <- mkdir(within(t), c, `C:\b`) }()
	f.waiting(t, 1)
	// Half of the places is what one caller may have.
	if err := mkdir(within(t), c, `C:\c`); status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "too many operations") {
		t.Errorf("got %v", err)
	}
	if n := f.becomes(t, "pipeguard_operations_refused_total", 1); n != 1 {
		t.Errorf("%v refusals counted", n)
	}
	close(g.door(`C:\a`))
	close(g.door(`C:\b`))
	for range 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}

func TestCallerThatDiesWhileItWaitsIsRefused(t *testing.T) {
	f := start(t, "unix")
	g := newTurnstile(f)
	c := f.client(t, "filesystem-v1")
	answers := make(chan error, 2)
	go func() { answers <- mkdir(within(t), c, `C:\a`) }()
	g.await(t, `C:\a`)
	go func() { answers <- mkdir(within(t), c, `C:\a`) }()
	f.waiting(t, 1)
	f.peers.set(func(p *fakePeers) { p.dead = errors.New("it has ended") })
	close(g.door(`C:\a`))
	codesSeen := []codes.Code{status.Code(<-answers), status.Code(<-answers)}
	slices.Sort(codesSeen)
	if !slices.Equal(codesSeen, []codes.Code{codes.OK, codes.PermissionDenied}) || f.ran.Load() != 1 {
		t.Errorf("codes %v, %d operations ran", codesSeen, f.ran.Load())
	}
}

func TestStopWaitsForOperationsWhoseCallersHaveLeft(t *testing.T) {
	for name, deaf := range map[string]bool{"one that ends": false, "one that must be cancelled": true} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "unix", func(o *Options) {
				if deaf {
					o.Limits.StopTimeout = 100 * time.Millisecond
				}
			})
			g := newTurnstile(f)
			ctx, cancel := context.WithCancel(within(t))
			left := make(chan error, 1)
			c := f.client(t, "filesystem-v1")
			go func() { left <- mkdir(ctx, c, `C:\a`) }()
			g.await(t, `C:\a`)
			cancel()
			<-left
			stopped := make(chan error, 1)
			go func() { stopped <- f.stop() }()
			want := codes.Canceled
			if !deaf {
				close(g.door(`C:\a`))
				want = codes.OK
			}
			if err := <-stopped; err != nil {
				t.Error(err)
			}
			if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != want.String() {
				t.Errorf("%+v", e.Outcome)
			}
		})
	}
}

func TestOperationsHaveATimeOutOfTheirOwn(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.OperationTimeout = 50 * time.Millisecond })
	newTurnstile(f)
	err := mkdir(within(t), f.client(t, "filesystem-v1"), `C:\a`)
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if e := f.log.await(t, 1, terminal)[0]; e.Outcome.Code != "DeadlineExceeded" || e.IntentSeq == 0 || e.Outcome.CallerLeft {
		t.Errorf("%+v", e.Outcome)
	}
}

func TestOperationThatOutlivesItsTimeIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := newMetrics(newPrivateRegistry())
		if err != nil {
			t.Fatal(err)
		}
		core, logged := observer.New(zap.ErrorLevel)
		queue := order.New(order.Bounds{Running: 2, Waiting: 2, PerOwner: 2, PerGroup: 2, RunningPerOwner: 2, RunningPerGroup: 2})
		s := &Server{shared: shared{queue: queue, metrics: m}, limits: Limits{OperationTimeout: time.Minute}, log: zap.New(core)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.watch(ctx)
		leave, _, err := s.queue.Enter(ctx, order.Request{Name: "FormatVolume", ID: "x"})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute + watchInterval)
		if n := value(t, m.overdue); n != 0 {
			t.Errorf("%v overdue before the time is over", n)
		}
		time.Sleep(time.Minute)
		leave()
		time.Sleep(time.Minute)
		if n := value(t, m.overdue); n != 1 || logged.Len() != 1 {
			t.Errorf("%v overdue, %d log lines", n, logged.Len())
		}
	})
}

func TestARuleSaysWhichSharesAndServicesACallMayName(t *testing.T) {
	spec := allowDriver
	spec.Rules = []acl.Rule{{
		Name: "few", Pipes: []string{"smb-*", "system-*"}, Operations: []string{"*"}, Callers: spec.Rules[0].Callers,
		Shares: []string{`\\files.example\*`}, Services: []string{"MSiSCSI", "Top"}, Permits: []string{access.NodeAccount},
	}}
	policy, err := acl.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	apis, err := apiserver.Load("smb", "system")
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, "memory", func(o *Options) {
		o.APIs, o.Rules = apis, func(string, string) *Rules { return Listed(policy) }
	})
	seen := make(chan apiserver.Permits, 2)
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		seen <- call.Permits
		if call.Caller != inWords(driver) || call.Caller == "" {
			t.Errorf("the host is told that %q calls", call.Caller)
		}
		if call.Operation.Group == "smb" {
			return protoadapt.MessageV2Of(&smb.NewSmbGlobalMappingResponse{}), nil
		}
		return protoadapt.MessageV2Of(&system.StopServiceResponse{}), nil
	})
	shares, services := smb.NewSmbClient(f.client(t, "smb-v1")), system.NewSystemClient(f.client(t, "system-v1alpha1"))
	for _, remote := range []string{`\\evil.example\data`, `//evil.example/data/x`, `\\files.example.evil\data`, ``, `\\files.example`} {
		if _, err := shares.NewSmbGlobalMapping(within(t), &smb.NewSmbGlobalMappingRequest{RemotePath: remote}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%q: %v", remote, err)
		}
	}
	for _, name := range []string{"RpcSs", "", "MSiSCSI "} {
		if _, err := services.StopService(within(t), &system.StopServiceRequest{Name: name, Force: true}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := shares.NewSmbGlobalMapping(within(t), &smb.NewSmbGlobalMappingRequest{RemotePath: `//FILES.example/data/deep/er`}); err != nil {
		t.Error(err)
	}
	if _, err := services.StopService(within(t), &system.StopServiceRequest{Name: "msISCSI", Force: true}); err != nil {
		t.Fatal(err)
	}
	want := apiserver.Permits{NodeAccount: true, Services: []string{"MSiSCSI", "Top"}}
	if a, b := <-seen, <-seen; !reflect.DeepEqual(a, want) || !reflect.DeepEqual(b, want) {
		t.Errorf("permits %+v, then %+v", a, b)
	}
}

func TestPermitsComeFromTheRuleThatAllows(t *testing.T) {
	spec := allowDriver
	spec.Rules = []acl.Rule{
		{Name: "plain", Pipes: []string{"filesystem-v1"}, Operations: []string{"PathExists"}, Callers: spec.Rules[0].Callers},
		{Name: "bold", Pipes: []string{"filesystem-v1"}, Operations: []string{"*"}, Callers: spec.Rules[0].Callers, Permits: []string{access.Reformat}},
	}
	policy, err := acl.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, "memory", func(o *Options) { o.Rules = func(string, string) *Rules { return Listed(policy) } })
	seen := make(chan apiserver.Permits, 2)
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		seen <- call.Permits
		return answer(call)
	})
	c := f.client(t, "filesystem-v1")
	if err := errors.Join(lookAt(within(t), c), mkdir(within(t), c, `C:\a`)); err != nil {
		t.Fatal(err)
	}
	if plain, bold := <-seen, <-seen; !reflect.DeepEqual(plain, apiserver.Permits{}) || !reflect.DeepEqual(bold, apiserver.Permits{Reformat: true}) {
		t.Errorf("permits %+v, then %+v", plain, bold)
	}
	records := f.log.await(t, 2, terminal)
	if records[0].Decision.Permits != nil || !slices.Equal(records[1].Decision.Permits, []string{access.Reformat}) {
		t.Errorf("recorded %v, then %v", records[0].Decision.Permits, records[1].Decision.Permits)
	}
}
