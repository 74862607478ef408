package proxy

import (
	"context"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// ending is one way in which calls end, and what must be told of it.
type ending struct {
	name     string
	leave    time.Duration // after which the caller is gone, 0 if it waits
	deadline bool          // which the server is told
	do       func(*matrix, context.Context, *apiserver.Call) (proto.Message, error)
	denied   bool

	told       codes.Code // to the caller
	stage      audit.Stage
	result     string
	code       codes.Code   // in the record
	asRead     []codes.Code // one of them is, for operations that change nothing and end with their caller
	callerLeft bool
}

var endings = []ending{
	{name: "allowed", do: (*matrix).answer, told: codes.OK, stage: audit.StageResponseComplete, result: audit.ResultOK, code: codes.OK},
	{name: "denied", denied: true, told: codes.PermissionDenied, stage: audit.StageResponseComplete, result: audit.ResultDenied, code: codes.PermissionDenied},
	{name: "failing", told: codes.NotFound, stage: audit.StageResponseComplete, result: audit.ResultError, code: codes.NotFound,
		do: func(*matrix, context.Context, *apiserver.Call) (proto.Message, error) {
			return nil, status.Error(codes.NotFound, "no such thing")
		}},
	{name: "panicking", told: codes.Internal, stage: audit.StagePanic, result: audit.ResultPanic, code: codes.Internal,
		do: func(*matrix, context.Context, *apiserver.Call) (proto.Message, error) { panic("a fault of the host") }},
	{name: "cancelled by the client", leave: time.Second, do: (*matrix).outlive, told: codes.Canceled, stage: audit.StageResponseComplete,
		result: audit.ResultOK, code: codes.OK, asRead: []codes.Code{codes.Canceled}, callerLeft: true},
	{name: "past its deadline", leave: time.Second, deadline: true, do: (*matrix).outlive, told: codes.DeadlineExceeded, stage: audit.StageResponseComplete,
		result: audit.ResultOK, code: codes.OK, asRead: []codes.Code{codes.DeadlineExceeded, codes.Canceled}, callerLeft: true},
}

// matrix is a proxy with every method, whose calls end as they are told to.
type matrix struct {
	*fixture
	t       *testing.T
	apis    []*apiserver.API
	ending  atomic.Pointer[ending]
	clients map[string]*grpc.ClientConn
}

func newMatrix(t *testing.T, writer func(*Options)) *matrix {
	t.Helper()
	m := &matrix{t: t, apis: everyAPI(t), clients: map[string]*grpc.ClientConn{}}
	var pipes []string
	for _, api := range m.apis {
		pipes = append(pipes, api.GroupVersion().String())
	}
	everything, err := acl.New(acl.Spec{Rules: []acl.Rule{{Name: "all", Pipes: pipes, Operations: []string{"*"}, Callers: []acl.CallerPattern{{User: "S-1-5-18"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := acl.New(acl.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan struct{})
	m.fixture = start(t, "memory", writer, func(o *Options) {
		o.APIs = m.apis
		o.Rules = func(string, string) *Rules {
			if m.ending.Load().denied {
				return Listed(nothing)
			}
			return Listed(everything)
		}
		listen, left := o.Listen, len(m.apis)
		o.Listen = func(name string) (net.Listener, error) {
			l, err := listen(name)
			if left--; left == 0 {
				defer close(opened)
			}
			return l, err
		}
	})
	<-opened
	m.handler(func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
		return m.ending.Load().do(m, ctx, call)
	})
	for _, api := range m.apis {
		gv := api.GroupVersion().String()
		m.clients[gv] = m.client(t, gv, grpc.WithIdleTimeout(0))
	}
	return m
}

func (m *matrix) answer(_ context.Context, call *apiserver.Call) (proto.Message, error) {
	return responseTo(call)
}

// outlive waits until the caller has left. What changes the host goes on all the same.
func (m *matrix) outlive(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
	caller, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ Context() context.Context })
	if !ok {
		m.t.Error("the caller's stream is not known")
		return nil, nil
	}
	<-caller.Context().Done()
	time.Sleep(time.Second) // of the bubble: the caller, too, has seen that its time is over
	if call.Operation.ReadOnly {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		m.t.Errorf("%s was ended: %v", call.FullMethod, err)
	}
	return responseTo(call)
}

// call makes one call and returns the records that it has left, once the proxy is at rest.
func (m *matrix) call(gv apiserver.GroupVersion, method apiserver.Method, e *ending) ([]audit.Event, error) {
	before := len(m.log.all())
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	switch {
	case e.deadline:
		ctx, cancel = context.WithTimeout(ctx, e.leave)
		defer cancel()
	case e.leave > 0:
		defer time.AfterFunc(e.leave, cancel).Stop()
	}
	m.ending.Store(e)
	err := m.clients[gv.String()].Invoke(ctx, method.FullMethod, filled(method.NewRequest()), method.NewResponse())
	time.Sleep(3 * time.Second) // of the bubble: longer than any call takes
	synctest.Wait()
	return slices.DeleteFunc(m.log.all()[before:], func(e audit.Event) bool { return e.Type == audit.TypeLog }), err
}

// judge holds the records of one call against what they must be.
func (m *matrix) judge(gv apiserver.GroupVersion, method apiserver.Method, e *ending, records []audit.Event, told error) {
	m.t.Helper()
	fault := func(format string, args ...any) {
		m.t.Helper()
		m.t.Errorf("%s %s, %s: "+format, append([]any{gv, method.FullMethod, e.name}, args...)...)
	}
	if got := status.Code(told); got != e.told {
		fault("the caller was told %v, want %v", told, e.told)
	}
	want := 2
	if e.denied {
		want = 1
	}
	if len(records) != want {
		fault("%d records, want %d", len(records), want)
		return
	}
	end := records[want-1]
	for _, r := range records {
		if r.Type != audit.TypeRequest || r.What.FullMethod != method.FullMethod || r.What.Method != method.Operation.Name || r.What.Pipe != gv.Pipe() || r.ID != end.ID || r.ID == "" {
			fault("record %+v of %+v", r, r.What)
		}
	}
	if e.denied {
		if end.IntentSeq != 0 {
			fault("ends intent %d, and there is none", end.IntentSeq)
		}
	} else if intent := records[0]; intent.Stage != audit.StageRequestReceived || intent.Outcome != nil || end.IntentSeq != intent.Seq || intent.Seq >= end.Seq {
		fault("intent %d at stage %s, ended by record %d of intent %d", intent.Seq, intent.Stage, end.Seq, end.IntentSeq)
	}
	result, coded := e.result, []codes.Code{e.code}
	if e.asRead != nil && method.Operation.ReadOnly {
		result, coded = audit.ResultError, e.asRead // gRPC's own timer and that of the context run out at once
	}
	o := end.Outcome
	if end.Stage != e.stage || o == nil || o.Result != result || o.CallerLeft != e.callerLeft ||
		!slices.ContainsFunc(coded, func(c codes.Code) bool { return c.String() == o.Code }) {
		fault("ended at stage %s with %+v, want %s and one of %v", end.Stage, o, result, coded)
	}
}

// fill makes every call of the matrix, one after the other, and returns how many.
func (m *matrix) fill() (calls int) {
	for _, api := range m.apis {
		for _, method := range api.Methods() {
			for i := range endings {
				e := &endings[i]
				records, told := m.call(api.GroupVersion(), method, e)
				m.judge(api.GroupVersion(), method, e, records, told)
				calls++
			}
		}
	}
	m.reconciledAtRest(len(m.apis))
	if calls < fewestMethods*len(endings) {
		m.t.Errorf("only %d calls were made", calls)
	}
	return calls
}

func TestEveryMethodLeavesItsRecordsHoweverItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMatrix(t, func(*Options) {})
		t.Logf("%d calls", m.fill())
	})
}
