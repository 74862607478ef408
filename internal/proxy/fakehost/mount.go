package fakehost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// MountVolume implements [handler.Volume].
func (h *Host) MountVolume(ctx context.Context, id handler.VolumeID, target safepath.Path, permits handler.Permits) error {
	return h.change(ctx, "MountVolume", []string{string(id), target.String()}, func() (bool, error) {
		changed, err := h.mount(id, target, permits)
		return changed, failed("mount at", target, err)
	})
}

func (h *Host) mount(id handler.VolumeID, target safepath.Path, permits handler.Permits) (changed bool, err error) {
	if len(target.Rel()) == 0 {
		return false, errIsRoot
	}
	v, err := h.writable(id, permits)
	if err != nil {
		return false, err
	}
	at, err := h.existing(target, false)
	switch {
	case err != nil:
		return false, err
	case at.node.kind != kindDir:
		return false, fmt.Errorf("it is not a directory: %w", handler.ErrPrecondition)
	case at.node.mounted == v:
		return false, nil
	case at.node.mounted != nil:
		return false, fmt.Errorf("volume %s is mounted there: %w", at.node.mounted.ID, fs.ErrExist)
	case len(at.node.children) > 0:
		return false, errNotEmpty
	}
	at.node.mounted = v
	return true, nil
}

// UnmountVolume implements [handler.Volume].
func (h *Host) UnmountVolume(ctx context.Context, id handler.VolumeID, target safepath.Path) error {
	return h.change(ctx, "UnmountVolume", []string{string(id), target.String()}, func() (bool, error) {
		changed, err := h.unmount(id, target)
		return changed, failed("unmount", target, err)
	})
}

func (h *Host) unmount(id handler.VolumeID, target safepath.Path) (changed bool, err error) {
	at, err := h.find(target, false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case at.node == nil, at.node.mounted == nil:
		return false, nil
	case at.node.mounted != h.volumes[id]:
		return false, fmt.Errorf("volume %s is mounted there: %w", at.node.mounted.ID, handler.ErrPrecondition)
	}
	at.node.mounted = nil
	return true, nil
}

// VolumeIDFromTargetPath implements [handler.Volume].
func (h *Host) VolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (handler.VolumeID, error) {
	return ask(ctx, h, "VolumeIDFromTargetPath", []string{path.String()}, func() (handler.VolumeID, error) {
		at, err := h.existing(path, false)
		switch {
		case err != nil:
		case at.node.mounted == nil:
			err = fmt.Errorf("not a mounted folder: %w", handler.ErrPrecondition)
		default:
			return at.node.mounted.ID, nil
		}
		return "", failed("find the volume at", path, err)
	})
}

// ClosestVolumeIDFromTargetPath implements [handler.Volume].
func (h *Host) ClosestVolumeIDFromTargetPath(ctx context.Context, path safepath.Path) (handler.VolumeID, error) {
	return ask(ctx, h, "ClosestVolumeIDFromTargetPath", []string{path.String()}, func() (handler.VolumeID, error) {
		at, err := h.existing(path, true)
		switch {
		case err != nil:
			return "", failed("find the volume of", path, err)
		case at.node.mounted != nil:
			return at.node.mounted.ID, nil
		case at.on != nil:
			return at.on.ID, nil
		}
		for _, v := range h.volumes {
			if v.Drive != 0 && v.Drive == path.String()[0]&^0x20 {
				return v.ID, nil
			}
		}
		return "", failed("find the volume of", path, fs.ErrNotExist)
	})
}
