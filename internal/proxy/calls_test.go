package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	hub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// mkdirs makes the same directory through the published client of every version.
var mkdirs = map[string]func(context.Context, *grpc.ClientConn) error{
	"v1alpha1": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := v1alpha1.NewFilesystemClient(c).Mkdir(ctx, &v1alpha1.MkdirRequest{Path: `C:\a`, Context: v1alpha1.PathContext_POD})
		return err
	},
	"v1beta1": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := v1beta1.NewFilesystemClient(c).Mkdir(ctx, &v1beta1.MkdirRequest{Path: `C:\a`})
		return err
	},
	"v1beta2": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := v1beta2.NewFilesystemClient(c).Mkdir(ctx, &v1beta2.MkdirRequest{Path: `C:\a`})
		return err
	},
	"v1": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := v1.NewFilesystemClient(c).Mkdir(ctx, &v1.MkdirRequest{Path: `C:\a`})
		return err
	},
	"v2alpha1": func(ctx context.Context, c *grpc.ClientConn) error {
		_, err := hub.NewFilesystemClient(c).Mkdir(ctx, &hub.MkdirRequest{Path: `C:\a`})
		return err
	},
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestAllowedCallLeavesIntentThenEnd(t *testing.T) {
	for _, network := range []string{"memory", "unix"} {
		for version, mkdir := range mkdirs {
			t.Run(network+"/"+version, func(t *testing.T) {
				f := start(t, network)
				f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
					events := f.log.all()
					if len(events) != 1 || events[0].Stage != audit.StageRequestReceived {
						t.Errorf("when the operation runs the log holds %d records", len(events))
					}
					return answer(call)
				})
				if err := mkdir(within(t), f.client(t, "filesystem-"+version)); err != nil {
					t.Fatal(err)
				}
				end := f.log.await(t, 1, terminal)[0]
				if end.IntentSeq != 1 || end.Outcome.Result != audit.ResultOK || end.Outcome.Code != "OK" {
					t.Errorf("terminal record %+v, outcome %+v", end, end.Outcome)
				}
				want := &audit.What{
					Pipe: "csi-proxy-filesystem-" + version, Group: "filesystem", Version: version, Method: "Mkdir",
					FullMethod: "/" + version + ".Filesystem/Mkdir", Verb: "write",
					Params: json.RawMessage(`{"path":"C:\\a"}`), Targets: []audit.Target{{Kind: "path", Value: `C:\a`}},
				}
				if diff := cmp.Diff(want, end.What); diff != "" {
					t.Error(diff)
				}
				if end.Who.Assurance != "process" || end.Who.User.SID != "S-1-5-18" || end.Who.Process.PID != 4711 || end.Where.Node != "node-1" {
					t.Errorf("who %+v, where %+v", end.Who, end.Where)
				}
				if end.Decision.Rule != "driver" || end.Decision.Effect != audit.EffectAllow || !strings.HasPrefix(end.Decision.Policy.Revision, "sha256:") {
					t.Errorf("decision %+v", end.Decision)
				}
			})
		}
	}
}

func TestOlderNamesDoNotEvadeTheAccessList(t *testing.T) {
	f := start(t, "unix")
	alpha := v1alpha1.NewFilesystemClient(f.client(t, "filesystem-v1alpha1"))
	beta := v1beta1.NewFilesystemClient(f.client(t, "filesystem-v1beta1"))
	newer := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	calls := map[string]func() error{
		"LinkPath by v1alpha1": func() error {
			_, err := alpha.LinkPath(within(t), &v1alpha1.LinkPathRequest{SourcePath: `C:\a`, TargetPath: `C:\b`})
			return err
		},
		"LinkPath by v1beta1": func() error {
			_, err := beta.LinkPath(within(t), &v1beta1.LinkPathRequest{SourcePath: `C:\a`, TargetPath: `C:\b`})
			return err
		},
		"CreateSymlink by v1": func() error {
			_, err := newer.CreateSymlink(within(t), &v1.CreateSymlinkRequest{SourcePath: `C:\a`, TargetPath: `C:\b`})
			return err
		},
		"Rmdir by v1alpha1": func() error {
			_, err := alpha.Rmdir(within(t), &v1alpha1.RmdirRequest{Path: `C:\a`, Force: true})
			return err
		},
	}
	for name, call := range calls {
		if err := call(); status.Code(err) != codes.PermissionDenied {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, e := range f.log.await(t, len(calls), terminal) {
		if e.What.Method != "CreateSymlink" && e.What.Method != "Rmdir" || e.Outcome.Result != audit.ResultDenied || e.IntentSeq != 0 {
			t.Errorf("%s recorded as %s: %+v", e.What.FullMethod, e.What.Method, e.Outcome)
		}
	}
	if _, err := alpha.IsMountPoint(within(t), &v1alpha1.IsMountPointRequest{Path: `C:\a`}); err != nil {
		t.Errorf("IsMountPoint is IsSymlink, which is allowed: %v", err)
	}
	if n := f.ran.Load(); n != 1 {
		t.Errorf("%d operations ran, want 1", n)
	}
}

func TestDenialTellsWhatWhoWhyAndWhere(t *testing.T) {
	f := start(t, "memory")
	_, err := v1.NewFilesystemClient(f.client(t, "filesystem-v1")).Rmdir(within(t), &v1.RmdirRequest{Path: `C:\a`})
	if status.Code(err) != codes.PermissionDenied {
		t.Fatalf("got %v", err)
	}
	end := f.log.await(t, 1, terminal)[0]
	for _, want := range []string{"csi-proxy-filesystem-v1", "Rmdir", "S-1-5-18", "4711", "node.exe", "no rule for this pipe allows Rmdir", end.ID} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		peers  func(*fakePeers)
		reason string
	}{
		{"another user", func(p *fakePeers) { p.identity.User.SID = "S-1-5-19" }, "names this caller"},
		{"another program", func(p *fakePeers) { p.identity.Process.Exe = `C:\driver-evil\node.exe` }, "names this caller"},
		{"an identity without proof", func(p *fakePeers) { p.identity.Assurance = caller.AssuranceNone }, "not identified"},
		{"a process that has ended", func(p *fakePeers) { p.dead = errors.New("it has exited") }, "it has exited"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, "unix")
			f.peers.set(tt.peers)
			err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1"))
			if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), tt.reason) {
				t.Errorf("got %v", err)
			}
			end := f.log.await(t, 1, terminal)[0]
			if end.Outcome.Result != audit.ResultDenied || end.Decision.Effect != audit.EffectDeny || end.Decision.Rule != "" || !strings.Contains(end.Decision.Reason, tt.reason) {
				t.Errorf("outcome %+v, decision %+v", end.Outcome, end.Decision)
			}
			if f.ran.Load() != 0 {
				t.Error("the operation ran")
			}
		})
	}
}

func TestLogOnlyPassesAndSaysSo(t *testing.T) {
	f := start(t, "unix")
	c := hub.NewFilesystemClient(f.client(t, "filesystem-v2alpha1"))
	if _, err := c.RmdirContents(within(t), &hub.RmdirContentsRequest{Path: `C:\a`}); err != nil {
		t.Fatal(err)
	}
	end := f.log.await(t, 1, terminal)[0]
	if end.Decision.Effect != audit.EffectDeny || end.Decision.Mode != "LogOnly" || end.Outcome.Result != audit.ResultOK || end.IntentSeq == 0 {
		t.Errorf("decision %+v, outcome %+v, intent %d", end.Decision, end.Outcome, end.IntentSeq)
	}
	f.peers.set(func(p *fakePeers) { p.dead = errors.New("it has exited") })
	if _, err := c.RmdirContents(within(t), &hub.RmdirContentsRequest{Path: `C:\a`}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a dead caller on a LogOnly pipe: %v", err)
	}
}

func TestHandlersErrorsKeepTheirCode(t *testing.T) {
	f := start(t, "memory")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	for _, tt := range []struct {
		err  error
		code codes.Code
	}{
		{status.Error(codes.NotFound, "no such directory"), codes.NotFound},
		{errors.New("plain"), codes.Unknown},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		f.handler(func(context.Context, *apiserver.Call) (proto.Message, error) { return nil, tt.err })
		_, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`})
		if status.Code(err) != tt.code {
			t.Errorf("got %v, want %v", err, tt.code)
		}
	}
	f.handler(func(context.Context, *apiserver.Call) (proto.Message, error) { return nil, nil })
	if _, err := c.Mkdir(within(t), &v1.MkdirRequest{}); status.Code(err) != codes.Internal {
		t.Errorf("no answer and no error: %v", err)
	}
	var got []string
	for _, e := range f.log.await(t, 4, terminal) {
		got = append(got, e.Outcome.Result+" "+e.Outcome.Code)
	}
	if diff := cmp.Diff([]string{"error NotFound", "error Unknown", "error DeadlineExceeded", "error Internal"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPanicIsARecordAndAnError(t *testing.T) {
	f := start(t, "unix")
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	for _, value := range []any{"a secret of the request", errors.New("a secret of the request"), nil} {
		f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
			if value == nil {
				none := make([]string, len(call.Version))
				_ = none[len(call.FullMethod)] // a runtime error, as a mistake of ours would be
			}
			panic(value)
		})
		_, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`})
		if status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v", err)
		}
	}
	for _, e := range f.log.await(t, 3, terminal) {
		if e.Stage != audit.StagePanic || e.Outcome.Result != audit.ResultPanic || e.IntentSeq == 0 || strings.Contains(e.Outcome.Error, "secret") {
			t.Errorf("%s %+v", e.Stage, e.Outcome)
		}
	}
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return answer(call) })
	f.mustWork(t)
}

func TestCancelledCallStillEndsItsRecord(t *testing.T) {
	f := start(t, "unix")
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	f.handler(func(ctx context.Context, _ *apiserver.Call) (proto.Message, error) {
		cancel()
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err := lookAt(ctx, f.client(t, "filesystem-v1")); status.Code(err) != codes.Canceled {
		t.Errorf("got %v", err)
	}
	e := f.log.await(t, 1, terminal)[0]
	if e.Outcome.Code != "Canceled" || !e.Outcome.CallerLeft || e.Outcome.Result != audit.ResultError || e.IntentSeq == 0 {
		t.Errorf("outcome %+v", e.Outcome)
	}
}

func TestDeadlineOfTheClientReachesTheHandler(t *testing.T) {
	f := start(t, "unix")
	c := f.client(t, "filesystem-v1")
	if err := mkdirs["v1"](within(t), c); err != nil { // the connection is there before the clock runs
		t.Fatal(err)
	}
	f.handler(func(ctx context.Context, _ *apiserver.Call) (proto.Message, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
	defer cancel()
	if err := lookAt(ctx, c); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	// The client's own clock may end the stream first; the server then sees a cancellation.
	if e := f.log.await(t, 2, terminal)[1]; e.Outcome.Code != "DeadlineExceeded" && e.Outcome.Code != "Canceled" {
		t.Errorf("outcome %+v", e.Outcome)
	}
}
