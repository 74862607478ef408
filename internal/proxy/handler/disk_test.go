package handler_test

import (
	"strings"
	"testing"

	first "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1alpha1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

func TestDisksAreFoundByTheirWholeName(t *testing.T) {
	n := newNode(t, fakehost.Options{Disks: []fakehost.Disk{
		{Number: 7, IDs: handler.DiskIDs{Page83: "naa.abc"}}, {Number: 5, IDs: handler.DiskIDs{Page83: "naa.abc"}},
		{Number: 9, IDs: handler.DiskIDs{Page83: "naa.abcd", SerialNumber: "serial"}}, {Number: 1},
	}})
	for name, want := range map[string]string{"naa.abc": "5", "naa.abcd": "9"} {
		got, err := n.call(t.Context(), "disk", &first.GetDiskNumberByNameRequest{DiskName: name})
		if err != nil || protoadapt.MessageV1Of(got).(*first.GetDiskNumberByNameResponse).GetDiskNumber() != want {
			t.Errorf("disk %s: %v, %v", name, got, err)
		}
	}
	for _, name := range []string{"NAA.ABC", "naa.ab", "abc", "naa.abc ", "serial", "9", "%", "naa.abc\n"} {
		_, err := n.call(t.Context(), "disk", &first.GetDiskNumberByNameRequest{DiskName: name})
		want := "could not find disk with Page83 ID " + strings.ReplaceAll(name, "\n", "\ufffd") + ": not found"
		if st := status.Convert(err); st.Code() != codes.NotFound || st.Message() != want {
			t.Errorf("disk %q: %v", name, err)
		}
	}
}
