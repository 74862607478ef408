package handler

import (
	"context"

	api "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
)

type filesystem struct {
	host  Filesystem
	paths paths
}

func (f filesystem) operations() map[string]operation {
	return map[string]operation{
		"PathExists":    typed(f.pathExists),
		"Mkdir":         typed(f.mkdir),
		"Rmdir":         typed(f.rmdir),
		"RmdirContents": typed(f.rmdirContents),
		"CreateSymlink": typed(f.createSymlink),
		"IsSymlink":     typed(f.isSymlink),
	}
}

func (f filesystem) pathExists(ctx context.Context, r *api.PathExistsRequest) (*api.PathExistsResponse, error) {
	path, err := f.paths.within(r.GetPath())
	if err != nil {
		return nil, err
	}
	exists, err := f.host.PathExists(ctx, path)
	return &api.PathExistsResponse{Exists: exists}, err
}

func (f filesystem) mkdir(ctx context.Context, r *api.MkdirRequest) (*api.MkdirResponse, error) {
	path, err := f.paths.within(r.GetPath())
	if err != nil {
		return nil, err
	}
	return &api.MkdirResponse{}, f.host.Mkdir(ctx, path)
}

func (f filesystem) rmdir(ctx context.Context, r *api.RmdirRequest) (*api.RmdirResponse, error) {
	path, err := f.paths.ofVolume(r.GetPath())
	if err != nil {
		return nil, err
	}
	return &api.RmdirResponse{}, f.host.Rmdir(ctx, path, r.GetForce())
}

func (f filesystem) rmdirContents(ctx context.Context, r *api.RmdirContentsRequest) (*api.RmdirContentsResponse, error) {
	path, err := f.paths.ofVolume(r.GetPath())
	if err != nil {
		return nil, err
	}
	return &api.RmdirContentsResponse{}, f.host.RmdirContents(ctx, path)
}

func (f filesystem) createSymlink(ctx context.Context, r *api.CreateSymlinkRequest) (*api.CreateSymlinkResponse, error) {
	target, err := f.paths.ofVolume(r.GetTargetPath())
	if err != nil {
		return nil, err
	}
	source, err := f.paths.within(r.GetSourcePath())
	if err != nil {
		return nil, err
	}
	return &api.CreateSymlinkResponse{}, f.host.CreateSymlink(ctx, source, target)
}

func (f filesystem) isSymlink(ctx context.Context, r *api.IsSymlinkRequest) (*api.IsSymlinkResponse, error) {
	path, err := f.paths.within(r.GetPath())
	if err != nil {
		return nil, err
	}
	is, err := f.host.IsSymlink(ctx, path)
	return &api.IsSymlinkResponse{IsSymlink: is}, err
}
