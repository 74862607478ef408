package proxy

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"

	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// A path has one spelling from the access list to the record, however many separators came.
func TestOneSpellingOfAPathIsJudgedCarriedOutAndRecorded(t *testing.T) {
	policy, err := acl.New(acl.Spec{Rules: []acl.Rule{{
		Name: "driver", Pipes: []string{"filesystem-*"}, Operations: []string{"Mkdir", "Rmdir"}, Callers: []acl.CallerPattern{{User: driver.User.SID}},
		Paths: []string{`C:\k\plugins`},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	f := start(t, "unix", func(o *Options) { o.Rules = func(string, string) *Rules { return Listed(policy) } })
	carriedOut := make(chan string, 1)
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		carriedOut <- apiserver.Targets(call)[0].Value
		return answer(call)
	})
	alpha, newer := v1alpha1.NewFilesystemClient(f.client(t, "filesystem-v1alpha1")), v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	if _, err := alpha.Mkdir(within(t), &v1alpha1.MkdirRequest{Path: `c:\\k\\\plugins\x\\`}); err != nil {
		t.Fatal(err)
	}
	if path := <-carriedOut; path != `c:\k\plugins\x` {
		t.Errorf("%s was carried out", path)
	}
	for _, path := range []string{`C:\k\\plugins\\`, `C:\\k\plugins\`} { // the rule's own directory
		if _, err := newer.Rmdir(within(t), &v1.RmdirRequest{Path: path, Force: true}); status.Code(err) != codes.PermissionDenied {
			t.Errorf("removal of %s: %v", path, err)
		}
	}
	for i, end := range f.log.await(t, 3, terminal) {
		want := []string{`c:\k\plugins\x`, `C:\k\plugins`, `C:\k\plugins`}[i]
		if len(end.What.Targets) != 1 || end.What.Targets[0].Value != want {
			t.Errorf("recorded are %+v, want %s", end.What.Targets, want)
		}
	}
}
