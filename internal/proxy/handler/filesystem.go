package handler

import (
	"context"

	api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
)

type filesystem struct {
	host  Filesystem
	roots *safepath.Roots
}

// operations remove and link only what CheckVolume accepts: a directory that many volumes share would take those of every pod with it.
func (f filesystem) operations() map[string]operation {
	return map[string]operation{
		"PathExists":    on((*api.PathExistsRequest).GetPath, f.roots.Check, f.pathExists),
		"Mkdir":         on((*api.MkdirRequest).GetPath, f.roots.Check, f.mkdir),
		"Rmdir":         on((*api.RmdirRequest).GetPath, f.roots.CheckVolume, f.rmdir),
		"RmdirContents": on((*api.RmdirContentsRequest).GetPath, f.roots.CheckVolume, f.rmdirContents),
		"CreateSymlink": on((*api.CreateSymlinkRequest).GetTargetPath, f.roots.CheckVolume, f.createSymlink),
		"IsSymlink":     on((*api.IsSymlinkRequest).GetPath, f.roots.Check, f.isSymlink),
	}
}

func (f filesystem) pathExists(ctx context.Context, path safepath.Path, _ *api.PathExistsRequest) (*api.PathExistsResponse, error) {
	exists, err := f.host.PathExists(ctx, path)
	return &api.PathExistsResponse{Exists: exists}, err
}

func (f filesystem) mkdir(ctx context.Context, path safepath.Path, _ *api.MkdirRequest) (*api.MkdirResponse, error) {
	return &api.MkdirResponse{}, f.host.Mkdir(ctx, path)
}

func (f filesystem) rmdir(ctx context.Context, path safepath.Path, r *api.RmdirRequest) (*api.RmdirResponse, error) {
	return &api.RmdirResponse{}, f.host.Rmdir(ctx, path, r.GetForce())
}

func (f filesystem) rmdirContents(ctx context.Context, path safepath.Path, _ *api.RmdirContentsRequest) (*api.RmdirContentsResponse, error) {
	return &api.RmdirContentsResponse{}, f.host.RmdirContents(ctx, path)
}

func (f filesystem) createSymlink(ctx context.Context, target safepath.Path, r *api.CreateSymlinkRequest) (*api.CreateSymlinkResponse, error) {
	source, err := f.roots.Check(r.GetSourcePath())
	if err != nil {
		return nil, err
	}
	return &api.CreateSymlinkResponse{}, f.host.CreateSymlink(ctx, source, target)
}

func (f filesystem) isSymlink(ctx context.Context, path safepath.Path, _ *api.IsSymlinkRequest) (*api.IsSymlinkResponse, error) {
	is, err := f.host.IsSymlink(ctx, path)
	return &api.IsSymlinkResponse{IsSymlink: is}, err
}
