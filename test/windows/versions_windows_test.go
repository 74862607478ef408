package windows

import (
	"context"
	"testing"

	fsv1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	fsv1alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1alpha1"
	fsv1beta1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta1"
	fsv1beta2api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1beta2"
	fsv2alpha1api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	fsv1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
	fsv1alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1alpha1"
	fsv1beta1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta1"
	fsv1beta2 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1beta2"
	fsv2alpha1 "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v2alpha1"
)

// driver is what one version of the published client can do, in the newest words.
// A function that the version does not have is nil.
type driver struct {
	mkdir, rmdir, rmdirAll, empty func(ctx context.Context, path string) error
	exists, isLink                func(ctx context.Context, path string) (bool, error)
	link                          func(ctx context.Context, source, target string) error
	linkMethod                    string
}

// must takes what a NewClient returns and closes the client when the test ends.
func must[C interface{ Close() error }](client C, err error) func(*testing.T) C {
	return func(t *testing.T) C {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

// dial opens a version's pipe with its stock client.
func dial(t *testing.T, version string) driver {
	t.Helper()
	switch version {
	case "v1alpha1":
		c := must(fsv1alpha1.NewClient())(t)
		return driver{
			mkdir: func(ctx context.Context, path string) error {
				_, err := c.Mkdir(ctx, &fsv1alpha1api.MkdirRequest{Path: path, Context: fsv1alpha1api.PathContext_POD})
				return err
			},
			rmdir: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1alpha1api.RmdirRequest{Path: path, Context: fsv1alpha1api.PathContext_POD})
				return err
			},
			rmdirAll: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1alpha1api.RmdirRequest{Path: path, Force: true})
				return err
			},
			exists: func(ctx context.Context, path string) (bool, error) {
				r, err := c.PathExists(ctx, &fsv1alpha1api.PathExistsRequest{Path: path, Context: fsv1alpha1api.PathContext_POD})
				return r.GetExists(), err
			},
			isLink: func(ctx context.Context, path string) (bool, error) {
				r, err := c.IsMountPoint(ctx, &fsv1alpha1api.IsMountPointRequest{Path: path})
				return r.GetIsMountPoint(), err
			},
			link: func(ctx context.Context, source, target string) error {
				_, err := c.LinkPath(ctx, &fsv1alpha1api.LinkPathRequest{SourcePath: source, TargetPath: target})
				return err
			},
			linkMethod: "LinkPath",
		}
	case "v1beta1":
		c := must(fsv1beta1.NewClient())(t)
		return driver{
			mkdir: func(ctx context.Context, path string) error {
				_, err := c.Mkdir(ctx, &fsv1beta1api.MkdirRequest{Path: path, Context: fsv1beta1api.PathContext_POD})
				return err
			},
			rmdir: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1beta1api.RmdirRequest{Path: path, Context: fsv1beta1api.PathContext_POD})
				return err
			},
			rmdirAll: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1beta1api.RmdirRequest{Path: path, Force: true})
				return err
			},
			exists: func(ctx context.Context, path string) (bool, error) {
				r, err := c.PathExists(ctx, &fsv1beta1api.PathExistsRequest{Path: path, Context: fsv1beta1api.PathContext_POD})
				return r.GetExists(), err
			},
			isLink: func(ctx context.Context, path string) (bool, error) {
				r, err := c.IsMountPoint(ctx, &fsv1beta1api.IsMountPointRequest{Path: path})
				return r.GetIsMountPoint(), err
			},
			link: func(ctx context.Context, source, target string) error {
				_, err := c.LinkPath(ctx, &fsv1beta1api.LinkPathRequest{SourcePath: source, TargetPath: target})
				return err
			},
			linkMethod: "LinkPath",
		}
	case "v1beta2":
		c := must(fsv1beta2.NewClient())(t)
		return driver{
			mkdir: func(ctx context.Context, path string) error {
				_, err := c.Mkdir(ctx, &fsv1beta2api.MkdirRequest{Path: path})
				return err
			},
			rmdir: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1beta2api.RmdirRequest{Path: path})
				return err
			},
			rmdirAll: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1beta2api.RmdirRequest{Path: path, Force: true})
				return err
			},
			exists: func(ctx context.Context, path string) (bool, error) {
				r, err := c.PathExists(ctx, &fsv1beta2api.PathExistsRequest{Path: path})
				return r.GetExists(), err
			},
			isLink: func(ctx context.Context, path string) (bool, error) {
				r, err := c.IsSymlink(ctx, &fsv1beta2api.IsSymlinkRequest{Path: path})
				return r.GetIsSymlink(), err
			},
			link: func(ctx context.Context, source, target string) error {
				_, err := c.CreateSymlink(ctx, &fsv1beta2api.CreateSymlinkRequest{SourcePath: source, TargetPath: target})
				return err
			},
			linkMethod: "CreateSymlink",
		}
	case "v1":
		c := must(fsv1.NewClient())(t)
		return driver{
			mkdir: func(ctx context.Context, path string) error {
				_, err := c.Mkdir(ctx, &fsv1api.MkdirRequest{Path: path})
				return err
			},
			rmdir: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1api.RmdirRequest{Path: path})
				return err
			},
			rmdirAll: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv1api.RmdirRequest{Path: path, Force: true})
				return err
			},
			exists: func(ctx context.Context, path string) (bool, error) {
				r, err := c.PathExists(ctx, &fsv1api.PathExistsRequest{Path: path})
				return r.GetExists(), err
			},
			isLink: func(ctx context.Context, path string) (bool, error) {
				r, err := c.IsSymlink(ctx, &fsv1api.IsSymlinkRequest{Path: path})
				return r.GetIsSymlink(), err
			},
			link: func(ctx context.Context, source, target string) error {
				_, err := c.CreateSymlink(ctx, &fsv1api.CreateSymlinkRequest{SourcePath: source, TargetPath: target})
				return err
			},
			linkMethod: "CreateSymlink",
		}
	case "v2alpha1":
		c := must(fsv2alpha1.NewClient())(t)
		return driver{
			mkdir: func(ctx context.Context, path string) error {
				_, err := c.Mkdir(ctx, &fsv2alpha1api.MkdirRequest{Path: path})
				return err
			},
			rmdir: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv2alpha1api.RmdirRequest{Path: path})
				return err
			},
			rmdirAll: func(ctx context.Context, path string) error {
				_, err := c.Rmdir(ctx, &fsv2alpha1api.RmdirRequest{Path: path, Force: true})
				return err
			},
			empty: func(ctx context.Context, path string) error {
				_, err := c.RmdirContents(ctx, &fsv2alpha1api.RmdirContentsRequest{Path: path})
				return err
			},
			exists: func(ctx context.Context, path string) (bool, error) {
				r, err := c.PathExists(ctx, &fsv2alpha1api.PathExistsRequest{Path: path})
				return r.GetExists(), err
			},
			isLink: func(ctx context.Context, path string) (bool, error) {
				r, err := c.IsSymlink(ctx, &fsv2alpha1api.IsSymlinkRequest{Path: path})
				return r.GetIsSymlink(), err
			},
			link: func(ctx context.Context, source, target string) error {
				_, err := c.CreateSymlink(ctx, &fsv2alpha1api.CreateSymlinkRequest{SourcePath: source, TargetPath: target})
				return err
			},
			linkMethod: "CreateSymlink",
		}
	}
	t.Fatalf("no client for %s", version)
	return driver{}
}
