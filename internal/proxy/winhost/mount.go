package winhost

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
)

// mounts is the mount manager, which takes paths and follows links in them. Its callers hold the directories on the way
// ([tree.held]), and look before and after, by handle, at what it did.
type mounts interface {
	// Set makes a volume show at an empty directory.
	Set(path string, id handler.VolumeID) error
	// Delete makes a mount point an empty directory again.
	Delete(path string) error
	// At names the volume that shows at a mount point.
	At(path string) (handler.VolumeID, error)
	// Paths names the drives and mount points at which a volume shows, each with a separator at its end. A volume that the
	// mount manager does not know is fs.ErrNotExist.
	Paths(id handler.VolumeID) ([]string, error)
}

// errNotEmpty means that a mount would hide what a directory holds.
var errNotEmpty = fmt.Errorf("the directory is not empty: %w", fs.ErrExist)

// shown returns the volume that shows at a name, and false if none does. A junction is no mount point: it leads to
// a path.
func shown(at at) (handler.VolumeID, bool, error) {
	entry, err := at.parent.Stat(at.name)
	if err != nil || entry.kind != mount {
		return "", false, err
	}
	text, err := at.parent.Readlink(at.name)
	if err != nil {
		return "", false, err
	}
	id, ok := volumeIn(text)
	return id, ok, nil
}

// volumeIn says which volume a link leads to, if it leads to the whole of one.
func volumeIn(text string) (handler.VolumeID, bool) {
	if !strings.HasSuffix(text, `\`) {
		text += `\`
	}
	id, err := handler.ParseVolumeID(text)
	return id, err == nil
}

// MountVolume implements [handler.Volume].
func (v volumes) MountVolume(ctx context.Context, id handler.VolumeID, target safepath.Path, permits handler.Permits) error {
	tree, names, err := v.at(ctx, target)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return wrap("mount at", target, errRoot)
	}
	if _, err := v.writable(ctx, id, permits); err != nil {
		return wrap("mount at", target, err)
	}
	return wrap("mount at", target, tree.held(names, func(at at) error {
		if done, err := mountable(at, id); done || err != nil {
			return err
		}
		before, err := v.mounts.Paths(id)
		if err != nil {
			return err
		}
		if err := v.mounts.Set(target.String(), id); err != nil {
			// Another process may have mounted it there meanwhile, which is just as good.
			if on, is, _ := shown(at); is && on == id {
				return nil
			}
			return err
		}
		return v.confirm(at, id, before)
	}))
}

// mountable says whether id shows at a place already, and refuses every place but an empty directory.
func mountable(at at, id handler.VolumeID) (done bool, err error) {
	on, is, err := shown(at)
	switch {
	case err != nil:
		return false, err
	case is && on == id:
		return true, nil
	case is:
		return false, fmt.Errorf("volume %s is mounted there: %w", on, fs.ErrExist)
	}
	directory, err := at.parent.Open(at.name)
	if errors.Is(err, errRedirected) || errors.Is(err, errNotDir) {
		return false, fmt.Errorf("it is not a directory: %w", handler.ErrPrecondition)
	}
	if err != nil {
		return false, err
	}
	names, err := directory.Names(1)
	if err = errors.Join(err, directory.Close()); err != nil {
		return false, err
	}
	if len(names) > 0 {
		return false, errNotEmpty
	}
	return false, nil
}

// confirm looks through the handle of the parent whether what was asked of the mount manager by path was done here. If not, the
// path was led elsewhere meanwhile, and the volume is unmounted wherever it shows now and did not before.
func (v volumes) confirm(at at, id handler.VolumeID, before []string) error {
	on, is, err := shown(at)
	if err == nil && is && on == id {
		return nil
	}
	err = errors.Join(fmt.Errorf("%w: the mount point was made elsewhere", errRedirected), err)
	after, pathsErr := v.mounts.Paths(id)
	err = errors.Join(err, pathsErr)
	for _, path := range after {
		isOld := slices.ContainsFunc(before, func(old string) bool { return safepath.EqualFold(old, path) })
		if tree, names := v.anywhere(path); !isOld && len(names) > 0 {
			if stays := v.unmount(tree, names, id, strings.TrimSuffix(path, `\`)); stays != nil {
				err = errors.Join(err, fmt.Errorf("the volume stays mounted at %s: %w", path, stays))
			}
		}
	}
	return err
}

// anywhere takes a path of the mount manager's apart: a drive or a volume without a letter, and the names beneath it.
func (v volumes) anywhere(path string) (tree, []string) {
	root, rest := path, ""
	if at := strings.Index(path, `}\`); strings.HasPrefix(path, `\\?\`) && at > 0 {
		root, rest = path[:at+2], path[at+2:]
	} else if len(path) > 3 {
		root, rest = path[:3], path[3:]
	}
	return v.tree(root), strings.FieldsFunc(rest, func(r rune) bool { return r == '\\' })
}

// UnmountVolume implements [handler.Volume]. A volume that is gone is unmounted without being flushed: its mount point
// would stay for ever.
func (v volumes) UnmountVolume(ctx context.Context, id handler.VolumeID, target safepath.Path) error {
	tree, names, err := v.at(ctx, target)
	if err != nil {
		return err
	}
	isMounted := false
	err = tree.with(names, func(at at) (err error) {
		isMounted, err = shows(at, id)
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotDir):
		return nil
	case err != nil, !isMounted:
		return wrap("unmount", target, err)
	}
	volume, err := v.volume(ctx, id)
	if errors.Is(err, fs.ErrNotExist) {
		return wrap("unmount", target, tree.held(names, func(at at) error { return v.unmountGone(at, id, target) }))
	}
	if err == nil {
		err = v.flush(ctx, id, volume)
	}
	if err != nil {
		return wrap("unmount", target, err)
	}
	return wrap("unmount", target, v.unmount(tree, names, id, target.String()))
}

// shows says whether a volume shows at a place, and refuses one at which another does.
func shows(at at, id handler.VolumeID) (bool, error) {
	on, is, err := shown(at)
	if err == nil && is && on != id {
		err = fmt.Errorf("volume %s is mounted there: %w", on, handler.ErrPrecondition)
	}
	return is && err == nil, err
}

// unmountGone makes the mount point of a volume that the storage service does not know an empty directory again. If the
// mount manager does not know the volume either, nothing is lost by doing it by handle.
func (v volumes) unmountGone(at at, id handler.VolumeID, target safepath.Path) error {
	v.log.Warn("the mount point of a volume that is gone is removed", zap.String(logkeys.Path, target.String()), zap.String(logkeys.Name, volumeName(id)))
	if is, err := shows(at, id); err != nil || !is {
		return err
	}
	if there, err := v.mounts.At(target.String()); err == nil && there == id {
		return v.delete(at, id, target.String())
	}
	if err := at.parent.Remove(at.name); err != nil {
		return err
	}
	return at.parent.Mkdir(at.name)
}

// unmount makes a mount point of a volume an empty directory again, wherever it is. It is looked at anew: flushing may have
// taken its time.
func (v volumes) unmount(tree tree, names []string, id handler.VolumeID, path string) error {
	return tree.held(names, func(at at) error {
		if is, err := shows(at, id); err != nil || !is {
			return err
		}
		return v.delete(at, id, path)
	})
}

// delete looks before where the path leads, and afterwards by handle whether the mount point here is the one that went.
func (v volumes) delete(at at, id handler.VolumeID, path string) error {
	there, err := v.mounts.At(path)
	if err != nil {
		return err
	}
	if there != id {
		return fmt.Errorf("%w: by path, volume %s is mounted there", errRedirected, there)
	}
	if err := v.mounts.Delete(path); err != nil {
		return err
	}
	if _, is, err := shown(at); err != nil || is {
		return errors.Join(fmt.Errorf("%w: another mount point was removed", errRedirected), err)
	}
	return nil
}
