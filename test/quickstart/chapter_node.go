package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	oldfilesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	smb "github.com/kubernetes-csi/csi-proxy/client/api/smb/v1"
	system "github.com/kubernetes-csi/csi-proxy/client/api/system/v1alpha1"
	volume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1"
	oldvolume "github.com/kubernetes-csi/csi-proxy/client/api/volume/v1beta3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
)

// driverDir is where a CSI driver works, inside the proxy's working directories.
const driverDir = `C:\var\lib\kubelet\plugins\disk.csi.azure.com\mount`

// node is the proxy as its callers see it.
type node struct {
	programs  programs
	socketDir string
}

// onPipe opens a pipe for one step.
func (n node) onPipe(name string, use func(*grpc.ClientConn) error) error {
	conn, err := dial(n.socketDir, name)
	if err != nil {
		return err
	}
	return errors.Join(use(conn), conn.Close())
}

// calls tells what the proxy lets pass and refuses.
func calls(ctx context.Context, s *story, n node) {
	s.chapter("The node: which calls a caller may make")

	s.step("A driver makes its directory",
		`This program plays the driver, with the client stubs that CSI drivers use. The proxy's configuration allows this
		program and this user some operations; the proxy asks the kernel who calls, not the caller.`,
		func() error {
			return n.onPipe("csi-proxy-filesystem-v1", func(conn *grpc.ClientConn) error { return makeDir(ctx, s, conn) })
		})

	s.step("The same by a driver of 2020",
		`The older versions of the API are served too. A request is converted to the newest version before it is judged, so no
		old version walks around a rule. The directory is the same directory.`,
		func() error {
			return n.onPipe("csi-proxy-filesystem-v1alpha1", func(conn *grpc.ClientConn) error {
				r, err := oldfilesystem.NewFilesystemClient(conn).PathExists(ctx, &oldfilesystem.PathExistsRequest{Path: driverDir})
				s.show(answer("v1alpha1 PathExists "+driverDir, r, err))
				if err != nil {
					return err
				}
				if !r.Exists || r.Error != "" {
					return errors.New("the directory is not there")
				}
				return nil
			})
		})

	s.step("An operation that no rule allows",
		`The rule names PathExists, Mkdir, CreateSymlink and IsSymlink. Rmdir is not among them. What no rule allows is denied.`,
		func() error {
			return n.onPipe("csi-proxy-filesystem-v1", func(conn *grpc.ClientConn) error {
				r, err := filesystem.NewFilesystemClient(conn).Rmdir(ctx, &filesystem.RmdirRequest{Path: driverDir, Force: true})
				s.show(answer("v1 Rmdir "+driverDir+" force", r, err))
				return failedWith(err, codes.PermissionDenied, "Rmdir")
			})
		})

	s.step("A path outside the working directories",
		`An allowed operation on a path that only begins like the kubelet's directory. Containment is judged by segments.`,
		func() error {
			return n.onPipe("csi-proxy-filesystem-v1", func(conn *grpc.ClientConn) error {
				const outside = `C:\var\lib\kubelet-evil\x`
				r, err := filesystem.NewFilesystemClient(conn).Mkdir(ctx, &filesystem.MkdirRequest{Path: outside})
				s.show(answer("v1 Mkdir "+outside, r, err))
				return failedWith(err, codes.InvalidArgument, "kubelet-evil")
			})
		})

	s.step("A method that does not exist",
		`It is refused, and leaves a record like every other request.`,
		func() error {
			return n.onPipe("csi-proxy-filesystem-v1", func(conn *grpc.ClientConn) error {
				r := &filesystem.MkdirResponse{}
				err := conn.Invoke(ctx, "/v1.Filesystem/FormatEverything", &filesystem.MkdirRequest{}, r)
				s.show(answer("v1 FormatEverything", r, err))
				return failedWith(err, codes.Unimplemented)
			})
		})

	s.step("Volumes: looking is allowed, formatting is not",
		`The rule for volumes allows two operations that change nothing.`,
		func() error {
			return n.onPipe("csi-proxy-volume-v1", func(conn *grpc.ClientConn) error { return volumes(ctx, s, conn) })
		})

	s.step("A format that would destroy data",
		`A rule allows this driver to format volumes on the older pipe. This volume has a file system, and the right to format
		does not include that: it takes a word of its own in the rule.`,
		func() error {
			return n.onPipe("csi-proxy-volume-v1beta3", func(conn *grpc.ClientConn) error { return reformat(ctx, s, conn) })
		})

	s.step("An operation that takes being named",
		`The rule for disks allows this program everything, with a star. Partitioning destroys data, so a second policy, in Rego, is
		asked about it: it wants the operation spelled out for its caller.`,
		func() error {
			return n.onPipe("csi-proxy-disk-v1", func(conn *grpc.ClientConn) error { return partition(ctx, s, conn) })
		})

	s.step("A share with a password",
		`The share is mapped. That the password is in no record is checked further down.`,
		func() error {
			return n.onPipe("csi-proxy-smb-v1", func(conn *grpc.ClientConn) error {
				r, err := smb.NewSmbClient(conn).NewSmbGlobalMapping(ctx, &smb.NewSmbGlobalMappingRequest{
					RemotePath: string(fakehost.DataShare), Username: fakehost.DataUser, Password: fakehost.DataPassword,
				})
				s.show(answer("v1 NewSmbGlobalMapping "+string(fakehost.DataShare)+" as "+fakehost.DataUser, r, err))
				return err
			})
		})

	s.step("The system pipe",
		`It starts and stops any service of the node. No pattern covers it, it has to be named in a rule, and no rule names it.`,
		func() error {
			return n.onPipe("csi-proxy-system-v1alpha1", func(conn *grpc.ClientConn) error {
				r, err := system.NewSystemClient(conn).StopService(ctx, &system.StopServiceRequest{Name: "windefend", Force: true})
				s.show(answer("v1alpha1 StopService windefend", r, err))
				return failedWith(err, codes.PermissionDenied, "StopService")
			})
		})

	s.step("Another program of the same user",
		`"pipeguard call" makes a call that was allowed a moment ago. It runs as the same user, but it is not the program that
		the rule names, and the kernel says so.`,
		func() error { return otherProgram(ctx, s, n) })
}

func makeDir(ctx context.Context, s *story, conn *grpc.ClientConn) error {
	client := filesystem.NewFilesystemClient(conn)
	before, err := client.PathExists(ctx, &filesystem.PathExistsRequest{Path: driverDir})
	s.show(answer("v1 PathExists "+driverDir, before, err))
	if err != nil {
		return err
	}
	made, err := client.Mkdir(ctx, &filesystem.MkdirRequest{Path: driverDir})
	s.show(answer("v1 Mkdir "+driverDir, made, err))
	if err != nil {
		return err
	}
	after, err := client.PathExists(ctx, &filesystem.PathExistsRequest{Path: driverDir})
	s.show(answer("v1 PathExists "+driverDir, after, err))
	switch {
	case err != nil:
		return err
	case before.Exists:
		return errors.New("the directory was there before it was made")
	case !after.Exists:
		return errors.New("the directory was not made")
	}
	return nil
}

func volumes(ctx context.Context, s *story, conn *grpc.ClientConn) error {
	client := volume.NewVolumeClient(conn)
	list, err := client.ListVolumesOnDisk(ctx, &volume.ListVolumesOnDiskRequest{DiskNumber: 0})
	s.show(answer("v1 ListVolumesOnDisk 0", list, err))
	if err != nil {
		return err
	}
	if len(list.VolumeIds) == 0 {
		return errors.New("the in-memory host shows no volume")
	}
	r, err := client.FormatVolume(ctx, &volume.FormatVolumeRequest{VolumeId: list.VolumeIds[0]})
	s.show(answer("v1 FormatVolume "+list.VolumeIds[0], r, err))
	return failedWith(err, codes.PermissionDenied, "FormatVolume")
}

func partition(ctx context.Context, s *story, conn *grpc.ClientConn) error {
	client := disk.NewDiskClient(conn)
	list, err := client.ListDiskIDs(ctx, &disk.ListDiskIDsRequest{})
	s.show(answer("v1 ListDiskIDs", list, err))
	if err != nil {
		return err
	}
	r, err := client.PartitionDisk(ctx, &disk.PartitionDiskRequest{DiskNumber: 1})
	s.show(answer("v1 PartitionDisk 1", r, err))
	return failedWith(err, codes.PermissionDenied, "PN002")
}

func reformat(ctx context.Context, s *story, conn *grpc.ClientConn) error {
	id := string(fakehost.FormattedVolume)
	r, err := oldvolume.NewVolumeClient(conn).FormatVolume(ctx, &oldvolume.FormatVolumeRequest{VolumeId: id})
	s.show(answer("v1beta3 FormatVolume "+id, r, err))
	return failedWith(err, codes.AlreadyExists)
}

func otherProgram(ctx context.Context, s *story, n node) error {
	const request = `{"path": "C:\\var\\lib\\kubelet"}`
	out, errOut, code, err := output(ctx, n.programs.pipeguard,
		"call", "--socket-dir", n.socketDir, "--pipe", "filesystem-v1", "PathExists", request)
	if err != nil {
		return err
	}
	s.show(fmt.Sprintf("$ pipeguard call --pipe filesystem-v1 PathExists '%s'\n%s%sexit code %d", request, out, errOut, code))
	if code != 1 || !strings.Contains(errOut, "PermissionDenied") {
		return errors.New("the call was not denied")
	}
	return nil
}
