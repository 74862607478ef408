package forward

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"

	fs "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsalpha "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	fshub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	vol "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	volalpha "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1alpha1"
	volbeta "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta1"
)

// serveMemory runs a second proxy, over a machine in memory, where the first one expects its upstream.
func serveMemory(t *testing.T, b *before) (*fakehost.Host, *memoryLog) {
	t.Helper()
	host := fakehost.New(fakehost.Options{Roots: roots(t)})
	handlers, err := handler.New(handler.Hosts{Filesystem: host, Volume: host, System: host}, roots(t))
	if err != nil {
		t.Fatal(err)
	}
	apis, err := apiserver.Load(handlers.Groups()...)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := acl.New(allowAll())
	if err != nil {
		t.Fatal(err)
	}
	log := newMemoryLog()
	run(t, proxy.Options{
		APIs: apis, Handle: handlers.Handle, Peers: driver(), Rules: func(string, string) *proxy.Rules { return proxy.Listed(policy) }, Audit: log,
		Listen: func(name string) (net.Listener, error) {
			return listen(b.back(strings.TrimPrefix(name, "csi-proxy-")), b.pipes)
		},
	}, log)
	return host, log
}

func TestPublishedClientsThroughTwoProxies(t *testing.T) {
	b := newBefore(t)
	_, behind := serveMemory(t, b)
	ctx := within(t)
	dir, link := kubelet+`\plugins\driver\a`, kubelet+`\plugins\driver\b`

	alpha := fsalpha.NewFilesystemClient(b.client("filesystem-v1alpha1"))
	one := fs.NewFilesystemClient(b.client("filesystem-v1"))
	two := fshub.NewFilesystemClient(b.client("filesystem-v2alpha1"))
	serial := system.NewSystemClient(b.client("system-v1alpha1"))
	volumes := vol.NewVolumeClient(b.client("volume-v1"))
	oldVolumes := volalpha.NewVolumeClient(b.client("volume-v1alpha1"))
	betaVolumes := volbeta.NewVolumeClient(b.client("volume-v1beta1"))

	var ids []string
	steps := []struct {
		name string
		code codes.Code
		do   func() error
	}{
		{"an old client makes a directory", codes.OK, func() error {
			_, err := alpha.Mkdir(ctx, &fsalpha.MkdirRequest{Path: dir, Context: fsalpha.PathContext_POD})
			return err
		}},
		{"a newer one sees it", codes.OK, func() error {
			r, err := one.PathExists(ctx, &fs.PathExistsRequest{Path: dir})
			if !r.GetExists() {
				t.Error("the directory is not there")
			}
			return err
		}},
		{"a link by its old name", codes.OK, func() error {
			_, err := alpha.LinkPath(ctx, &fsalpha.LinkPathRequest{SourcePath: dir, TargetPath: link})
			return err
		}},
		{"the newest sees a link", codes.OK, func() error {
			r, err := two.IsSymlink(ctx, &fshub.IsSymlinkRequest{Path: link})
			if !r.GetIsSymlink() {
				t.Error("the link is not there")
			}
			return err
		}},
		{"what is not there", codes.NotFound, func() error {
			_, err := one.Rmdir(ctx, &fs.RmdirRequest{Path: kubelet + `\nothing`})
			return err
		}},
		{"the machine's serial number", codes.OK, func() error {
			r, err := serial.GetBIOSSerialNumber(ctx, &system.GetBIOSSerialNumberRequest{})
			if r.GetSerialNumber() == "" {
				t.Error("there is none")
			}
			return err
		}},
		{"volumes of a disk, by text", codes.OK, func() error {
			r, err := oldVolumes.ListVolumesOnDisk(ctx, &volalpha.ListVolumesOnDiskRequest{DiskId: "1"})
			ids = r.GetVolumeIds()
			return err
		}},
		{"and by number", codes.OK, func() error {
			r, err := volumes.ListVolumesOnDisk(ctx, &vol.ListVolumesOnDiskRequest{DiskNumber: 1})
			if diff := cmp.Diff(ids, r.GetVolumeIds()); diff != "" {
				t.Error(diff)
			}
			return err
		}},
		{"an error of an old version has its prefix once", codes.NotFound, func() error {
			_, err := betaVolumes.VolumeStats(ctx, &volbeta.VolumeStatsRequest{VolumeId: texts["volume_id"]})
			if n := strings.Count(status.Convert(err).Message(), "Forward to"); n != 1 {
				t.Errorf("it is there %d times: %v", n, err)
			}
			return err
		}},
	}
	for _, step := range steps {
		if err := step.do(); status.Code(err) != step.code {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	front, back := b.log.terminals(t, len(steps)), behind.terminals(t, len(steps))
	for i := range front {
		same := func(e audit.Event) []any { // the words that old versions put before an error come after the record
			return []any{e.What, e.Outcome.Code, strings.TrimPrefix(e.Outcome.Error, "Forward to GetVolumeStats failed, err=")}
		}
		if diff := cmp.Diff(same(back[i]), same(front[i])); diff != "" {
			t.Errorf("%s: the records of the two differ: %s", steps[i].name, diff)
		}
	}
}

func TestWritesGoOnAtTheUpstreamWhenTheCallerLeaves(t *testing.T) {
	b := newBefore(t)
	begun, finish := make(chan struct{}), make(chan struct{})
	serveEcho(t, b.back("filesystem-v1"), b.pipes).handler(func(_ any, s grpc.ServerStream) error {
		m, err := receive(s)
		if err != nil {
			return err
		}
		close(begun)
		select {
		case <-finish:
		case <-s.Context().Done():
			return s.Context().Err()
		}
		m = nil
		return s.SendMsg(&m)
	})
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-begun
		cancel()
	}()
	_, err := fs.NewFilesystemClient(b.client("filesystem-v1")).Rmdir(ctx, &fs.RmdirRequest{Path: kubelet + `\x`, Force: true})
	if status.Code(err) != codes.Canceled {
		t.Errorf("the caller is told %v", err)
	}
	close(finish)
	if end := b.log.terminals(t, 1)[0]; end.Outcome.Code != "OK" {
		t.Errorf("outcome %+v", end.Outcome)
	}
}
