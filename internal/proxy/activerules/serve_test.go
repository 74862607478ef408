package activerules

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pipeguard/pipeguard/api/v1alpha1"
	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/internal/proxy/requestpolicy"
	"github.com/pipeguard/pipeguard/test/memnet"
)

// served is a machine whose disk pipes and forwarded pipes are open.
type served struct {
	*machine
	registry *prometheus.Registry

	mu     sync.Mutex // guards the fields below
	events []audit.Event
	ran    int

	listeners map[string]*memnet.Listener
}

// Append implements audit.Writer.
func (s *served) Append(_ context.Context, e *audit.Event) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, *e)
	return uint64(len(s.events)), nil
}

// last is the terminal record of the call that was made last.
func (s *served) last() audit.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.events) {
		if e.Type == audit.TypeRequest && e.Outcome != nil {
			return e
		}
	}
	s.t.Fatal("no record")
	return audit.Event{}
}

// pod is theirs, as the kernel and the runtime say it.
type pod struct{}

func (pod) Resolve(net.Conn, peer.Arrival) (peer.Peer, error) { return pod{}, nil }
func (pod) Alive() error                                      { return nil }
func (pod) Close() error                                      { return nil }
func (pod) Identity() caller.Caller {
	return caller.Caller{
		Assurance: caller.AssurancePod, Process: caller.Process{PID: 4711, Start: issued, Exe: `\Device\x\driver.exe`}, User: caller.User{SID: theirs.User.SID},
		Pod:       caller.Pod{Namespace: theirs.Pod.Namespace, Name: "csi-0", UID: "u", ServiceAccount: theirs.Pod.ServiceAccount},
		Container: caller.Container{ID: "c", Name: theirs.Container.Name, Image: theirs.Container.Image},
	}
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{machine: newMachine(t), registry: prometheus.NewRegistry(), listeners: map[string]*memnet.Listener{}}
	apis, err := apiserver.Load("disk")
	if err != nil {
		t.Fatal(err)
	}
	open := make(chan struct{})
	forward := func(_ context.Context, _ string, stream grpc.ServerStream) error {
		s.mu.Lock()
		s.ran++
		s.mu.Unlock()
		return stream.SendMsg(&raw.Message{})
	}
	server, err := proxy.New(proxy.Options{
		APIs: apis, Peers: pod{}, Rules: s.rules.Rules, Audit: s, Registerer: s.registry, Node: "node-1",
		Forward: []proxy.Forwarded{{Pipe: "front", Serve: forward}, {Pipe: "back", Serve: forward}},
		Handle: func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ran++
			if call.Operation.Name == "PartitionDisk" {
				return protoadapt.MessageV2Of(&diskapi.PartitionDiskResponse{}), nil
			}
			return protoadapt.MessageV2Of(&diskapi.ListDiskIDsResponse{}), nil
		},
		Listen: func(name string) (net.Listener, error) {
			l := memnet.Listen()
			if s.listeners[name] = l; len(s.listeners) == len(apis)+2 {
				close(open)
			}
			return l, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	<-open
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *served) client(pipe string) *grpc.ClientConn {
	s.t.Helper()
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listeners[pipe].DialContext(ctx) }))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

func list(t *testing.T, c *grpc.ClientConn) error {
	t.Helper()
	_, err := diskapi.NewDiskClient(c).ListDiskIDs(t.Context(), &diskapi.ListDiskIDsRequest{})
	return err
}

func partition(t *testing.T, c *grpc.ClientConn) error {
	t.Helper()
	_, err := diskapi.NewDiskClient(c).PartitionDisk(t.Context(), &diskapi.PartitionDiskRequest{DiskNumber: 1})
	return err
}

func forwarded(t *testing.T, c *grpc.ClientConn, method string) error {
	t.Helper()
	sent, got := raw.Message{1}, raw.Message(nil)
	return c.Invoke(t.Context(), method, &sent, &got, grpc.ForceCodecV2(raw.Codec{}))
}

func want(t *testing.T, what string, err error, code codes.Code, texts ...string) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%s: %v, want %v", what, err, code)
		return
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %q does not say %q", what, err, text)
		}
	}
}

func TestABundleThatEndsEndsCallsOnOpenConnections(t *testing.T) {
	s := serve(t)
	disk, front, back := s.client("csi-proxy-disk-v1"), s.client("front"), s.client("back")
	want(t, "before there is a bundle", list(t, disk), codes.PermissionDenied, "no valid bundle")
	s.offer(7)
	want(t, "by the bundle", list(t, disk), codes.OK)
	e := s.last()
	if d := e.Decision; d.Rule != "azuredisk/node" || d.Policy.Name != "bundle" || d.Policy.Revision != policyRevision || d.Policy.Bundle != 7 || d.Mode != "Enforce" {
		t.Errorf("recorded as %+v by %+v", d, d.Policy)
	}
	want(t, "a forwarded pipe, by the bundle", forwarded(t, front, "/a.B/C"), codes.OK)
	want(t, "a forwarded pipe, which the node only watches", forwarded(t, back, "/a.B/C"), codes.OK)
	if d := s.last().Decision; d.Mode != "LogOnly" || d.Policy.Name != "acl" {
		t.Errorf("recorded as %+v by %+v", d, d.Policy)
	}

	s.set(issued.Add(24 * time.Hour))
	ran := s.ran
	for _, when := range []string{"after the end", "after the end, by a clock that was set back"} {
		want(t, when, list(t, disk), codes.PermissionDenied, "no valid bundle", "revision 7 ended")
		if d := s.last().Decision; d.Effect != audit.EffectDeny || d.Policy.Name != "bundle" || d.Policy.Bundle != 7 || d.Mode != "Enforce" {
			t.Errorf("recorded as %+v by %+v", d, d.Policy)
		}
		want(t, when, forwarded(t, front, "/a.B/C"), codes.PermissionDenied, "no valid bundle")
		want(t, when, forwarded(t, back, "/a.B/C"), codes.PermissionDenied, "no valid bundle")
		s.set(issued.Add(time.Hour))
	}
	if s.ran != ran {
		t.Errorf("%d calls ran", s.ran-ran)
	}
	s.offer(8)
	want(t, "by the next one", list(t, disk), codes.OK)
}

// The bundle's own Rego judges what its list allows, and the record says which of the two refused.
func TestTheBundlesPolicyJudgesWhatItsListAllows(t *testing.T) {
	s := serve(t)
	disk := s.client("csi-proxy-disk-v1")
	s.offer(7)
	want(t, "whom nobody has named", partition(t, disk), codes.PermissionDenied, "PN002")
	if d := s.last().Decision; d.Rule != "PN002" || d.Policy.Name != "request" || d.Effect != audit.EffectDeny {
		t.Errorf("recorded as %+v by %+v", d, d.Policy)
	}
	spelled := object("azuredisk", func(p *spec) {
		p.Pipes, p.Node.Methods = []v1alpha1.PipePattern{"csi-proxy-disk-*"}, []string{"PartitionDisk"}
	})
	s.offer(8, spelled)
	want(t, "who is named", partition(t, disk), codes.OK)
	want(t, "what is not spelled out", list(t, disk), codes.PermissionDenied, "azuredisk")
	s.offer(9)
	want(t, "who was named", partition(t, disk), codes.PermissionDenied, "PN002")
}

// Whatever callers send, there are as many series as pipes and as names that somebody wrote down.
func TestCallersMakeNoSeries(t *testing.T) {
	s := serve(t)
	s.offer(7)
	front, disk := s.client("front"), s.client("csi-proxy-disk-v1")
	want(t, "a forwarded call", forwarded(t, front, "/a.B/C"), codes.OK)
	want(t, "an unknown method", forwarded(t, disk, "/v1.Disk/C"), codes.Unimplemented)
	before := s.series()
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		want(t, "a forwarded call", forwarded(t, front, "/a.B/"+string(c)), codes.OK)
		want(t, "an unknown method", forwarded(t, disk, "/v1.Disk/"+string(c)), codes.Unimplemented)
	}
	s.set(issued.Add(25 * time.Hour))
	want(t, "after the end", forwarded(t, front, "/a.B/C"), codes.PermissionDenied)
	ended := s.series()
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		want(t, "after the end", forwarded(t, front, "/x."+string(c)+"/C"), codes.PermissionDenied)
	}
	if after := s.series(); before == 0 || after != ended || ended > before+8 { // a denial has a few of its own
		t.Errorf("%d series, then %d, then %d", before, ended, after)
	}
}

// series is how many there are once every call is counted: a caller may hear its answer before that.
func (s *served) series() int {
	s.t.Helper()
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		families, err := s.registry.Gather()
		if err != nil {
			s.t.Fatal(err)
		}
		n, under := 0, 0.0
		for _, f := range families {
			n += len(f.GetMetric())
			for _, m := range f.GetMetric() {
				switch f.GetName() {
				case "grpc_server_started_total":
					under += m.GetCounter().GetValue()
				case "grpc_server_handled_total":
					under -= m.GetCounter().GetValue()
				}
			}
		}
		if under == 0 {
			return n
		}
	}
	s.t.Fatal("calls are not counted as handled")
	return 0
}

// A permission to partition that has ended permits nothing, even if another policy still allows the same caller everything that
// the default policy lets pass.
func TestAMethodIsNamedForAsLongAsItsSubject(t *testing.T) {
	m := newMachine(t)
	end := issued.Add(2 * time.Hour)
	m.offer(7, object("everything"), object("for-a-day", func(p *spec) {
		p.Pipes, p.Node.Methods = []v1alpha1.PipePattern{"csi-proxy-disk-*"}, []string{"PartitionDisk"}
		p.Subjects[0].ExpiresAt, p.Subjects[0].Owner, p.Subjects[0].Reason = &metav1.Time{Time: end}, "storage", "a disk is replaced"
	}))
	for _, c := range []struct {
		when    time.Time
		allowed bool
	}{{issued.Add(time.Hour), true}, {end.Add(-time.Nanosecond), true}, {end, false}, {end.Add(time.Hour), false}} {
		m.set(c.when)
		rules := m.rules.Rules("disk", "v1")
		listed := m.ask("disk", "v1", "PartitionDisk", theirs)
		if !listed.Allowed {
			t.Fatalf("the list at %s: %+v", c.when, listed) // by the policy everything, which has not ended
		}
		call := &apiserver.Call{
			Operation: &apiserver.Operation{Group: "disk", Name: "PartitionDisk"}, Version: "v1", Method: "PartitionDisk", FullMethod: "/v1.Disk/PartitionDisk",
			Request: protoadapt.MessageV2Of(&diskapi.PartitionDiskRequest{DiskNumber: 1}),
		}
		d := rules.RequestPolicy.Decide(t.Context(), call, &requestpolicy.Circumstances{Named: listed.Named, Pipe: "csi-proxy-disk-v1", Now: c.when, Caller: caller.Caller{
			Assurance: theirs.Assurance, User: caller.User{SID: theirs.User.SID},
			Pod: caller.Pod{Namespace: theirs.Pod.Namespace, Name: "csi-0", UID: "u", ServiceAccount: theirs.Pod.ServiceAccount}, Container: caller.Container{ID: "c", Name: theirs.Container.Name},
		}})
		if d.Allowed() != c.allowed || !c.allowed && d.Rule != "PN002" {
			t.Errorf("at %s: %+v", c.when, d)
		}
	}
}
