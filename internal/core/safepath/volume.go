package safepath

import (
	"slices"
	"strings"
)

// Depths of a path that belongs to one volume, in segments that begin with the shared directory:
//
//	pods\UID\volumes\PLUGIN\VOLUME, pods\UID\volumeDevices\PLUGIN\VOLUME, pods\UID\volume-subpaths\VOLUME\CONTAINER
//	plugins\kubernetes.io\csi\DRIVER\HASH, plugins\kubernetes.io\csi\pv\VOLUME, plugins\kubernetes.io\PLUGIN\mounts\VOLUME
//	plugins\kubernetes.io\csi\volumeDevices\staging\VOLUME
//	plugins\DRIVER\NAME, in the directory that a driver has for itself
//
// https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/kubelet_getters.go and pkg/volume/csi/csi_util.go
const (
	podVolumeDepth    = 5
	pluginVolumeDepth = 5
	driverVolumeDepth = 3
)

// podVolumeDirs are the directories of a pod that hold its volumes. Beside them lie its containers' files, etc-hosts and what
// plugins keep for themselves, which are the kubelet's.
var podVolumeDirs = [...]string{"volumes", "volumeDevices", "volume-subpaths"}

// CheckVolume accepts what [Roots.Check] accepts and is deep enough to belong to a single volume, so that it may be
// removed, emptied, mounted over or made a link: not a working directory, nor what holds one, nor a directory of the kubelet
// that many volumes, pods or drivers share, nor what a pod has beside its volumes. Directories pods and plugins are the kubelet's where they are a working
// directory or lie in one directly; about what else lies in a working directory nothing is known, and it
// is accepted. The error is of type *[Error].
func (r *Roots) CheckVolume(path string) (Path, error) {
	p, err := r.Check(path)
	if err != nil {
		return Path{}, err
	}
	drive, segments, err := Split(path)
	if err != nil {
		return Path{}, err
	}
	refuse := func(reason string) (Path, error) { return Path{}, &Error{Path: path, Reason: reason} }
	for _, d := range r.dirs {
		if (root{drive: drive, segments: segments}).holds(d.drive, d.segments) {
			return refuse("path is or holds a working directory, and only what lies in one may be removed, replaced or mounted over")
		}
		if !d.holds(drive, segments) {
			continue
		}
		for at := len(d.segments) - 1; at <= len(d.segments); at++ {
			if reason := notOfVolume(segments[at:]); reason != "" {
				return refuse(reason)
			}
		}
	}
	return p, nil
}

// notOfVolume returns why segments, which may begin with the kubelet's pods or plugins, cannot be a single volume's, or "".
func notOfVolume(segments []string) string {
	switch {
	case isBesideVolumes(segments):
		return "path is in a pod's directory and in none of its " + strings.Join(podVolumeDirs[:], ", ") +
			", and only what lies in one of these may be removed, replaced or mounted over"
	case isShared(segments):
		return "path is shared by many volumes, and only that of one may be removed, replaced or mounted over"
	}
	return ""
}

// isBesideVolumes says whether segments name what lies in the directory of a pod, and in none that holds volumes. The name of such a
// one is taken only where all file systems agree on it.
func isBesideVolumes(segments []string) bool {
	return len(segments) > 2 && mayBe(segments[0], "pods") &&
		!slices.ContainsFunc(podVolumeDirs[:], func(name string) bool { return EqualFold(segments[2], name) })
}

// isShared says whether segments name the kubelet's pods or plugins, or what lies in them above a single volume.
func isShared(segments []string) bool {
	switch {
	case len(segments) == 0:
		return false
	case mayBe(segments[0], "pods"):
		return len(segments) < podVolumeDepth
	case !mayBe(segments[0], "plugins"):
		return false
	case len(segments) > 3 && mayBe(segments[1], "kubernetes.io") && mayBe(segments[3], "volumeDevices"):
		return len(segments) <= pluginVolumeDepth // the next may be staging or publish, of all volumes
	case len(segments) > 1 && mayBe(segments[1], "kubernetes.io"):
		return len(segments) < pluginVolumeDepth
	}
	return len(segments) < driverVolumeDepth
}

// mayBe says whether any file system that ignores case could take s for name, in ASCII. [EqualFold] is the other way round: it
// keeps apart what only some of them merge.
func mayBe(s, name string) bool { return strings.EqualFold(strings.ToUpper(s), name) }
