package admission

import (
	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// maxEntries bounds each list that is read, so that a text of empty entries does not grow into many times its memory.
const maxEntries = 10_000

// podSpec is what is read of a PodSpec. Lists keep the order and the duplicates of the object.
type podSpec struct {
	serviceAccount string
	nodeName       string
	hostProcess    *bool
	// gates is how many scheduling gates keep the pod from running.
	gates          int
	hostPaths      []hostPathVolume
	containers     []container
	initContainers []container
	ephemeral      []container
}

type hostPathVolume struct {
	index int // in spec.volumes
	name  string
	path  string
}

type container struct {
	name        string
	image       string
	privileged  bool
	hostProcess *bool
	mounts      []volumeMount
}

type volumeMount struct {
	volume  string
	subPath string
	expr    bool // subPath is a subPathExpr with variables
}

func readPodSpec(r *jsonscan.Reader) (s podSpec) {
	deprecatedAccount := ""
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "serviceAccountName":
			o.Once(0)
			s.serviceAccount = r.String()
		case "serviceAccount":
			o.Once(1)
			deprecatedAccount = r.String()
		case "securityContext":
			o.Once(2)
			_, s.hostProcess = readSecurityContext(r)
		case "volumes":
			o.Once(3)
			s.hostPaths = readVolumes(r)
		case "containers":
			o.Once(4)
			s.containers = readContainers(r)
		case "initContainers":
			o.Once(5)
			s.initContainers = readContainers(r)
		case "ephemeralContainers":
			o.Once(6)
			s.ephemeral = readContainers(r)
		case "schedulingGates":
			o.Once(7)
			for a := r.Array(); a.Next(); {
				s.gates++
				r.Skip()
			}
		case "nodeName":
			o.Once(8)
			s.nodeName = r.String()
		default:
			r.Skip()
		}
	}
	// The API server sets both names and lets serviceAccountName win; an account that is not named is "default".
	if s.serviceAccount == "" {
		s.serviceAccount = deprecatedAccount
	}
	if s.serviceAccount == "" {
		s.serviceAccount = "default"
	}
	return s
}

func readVolumes(r *jsonscan.Reader) (volumes []hostPathVolume) {
	for a := r.Array(); a.Next(); {
		if a.Index() == maxEntries {
			r.Failf("more than %d entries in a list", maxEntries)
			break
		}
		v := hostPathVolume{index: a.Index()}
		isHostPath := false
		for o := r.Object(); o.Next(); {
			switch string(o.Key()) {
			case "name":
				o.Once(0)
				v.name = r.String()
			case "hostPath":
				o.Once(1)
				if r.Null() {
					continue
				}
				isHostPath = true
				v.path = readHostPath(r)
			default:
				r.Skip()
			}
		}
		if isHostPath {
			r.Take(volumeWeight)
			volumes = append(volumes, v)
		}
	}
	return volumes
}

func readHostPath(r *jsonscan.Reader) (path string) {
	for o := r.Object(); o.Next(); {
		if string(o.Key()) != "path" {
			r.Skip()
			continue
		}
		o.Once(0)
		path = r.String()
	}
	return path
}

func readContainers(r *jsonscan.Reader) (containers []container) {
	for a := r.Array(); a.Next(); {
		if a.Index() == maxEntries {
			r.Failf("more than %d entries in a list", maxEntries)
			break
		}
		r.Take(containerWeight)
		var c container
		for o := r.Object(); o.Next(); {
			switch string(o.Key()) {
			case "name":
				o.Once(0)
				c.name = r.String()
			case "image":
				o.Once(1)
				c.image = r.String()
			case "securityContext":
				o.Once(2)
				c.privileged, c.hostProcess = readSecurityContext(r)
			case "volumeMounts":
				o.Once(3)
				c.mounts = readMounts(r)
			default:
				r.Skip()
			}
		}
		containers = append(containers, c)
	}
	return containers
}

func readMounts(r *jsonscan.Reader) (mounts []volumeMount) {
	for a := r.Array(); a.Next(); {
		if a.Index() == maxEntries {
			r.Failf("more than %d entries in a list", maxEntries)
			break
		}
		r.Take(mountWeight)
		var m volumeMount
		expr := ""
		for o := r.Object(); o.Next(); {
			switch string(o.Key()) {
			case "name":
				o.Once(0)
				m.volume = r.String()
			case "subPath":
				o.Once(1)
				m.subPath = r.String()
			case "subPathExpr":
				o.Once(2)
				expr = r.String()
			default:
				r.Skip()
			}
		}
		if expr != "" {
			if m.subPath != "" {
				r.Failf("a mount has both subPath and subPathExpr")
			}
			m.subPath = expr
			if subPath, ok := pipepath.Constant(expr); ok {
				m.subPath = subPath
			} else {
				m.expr = true
			}
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// readSecurityContext reads the security context of a pod or of a container: the fields have the same names.
// hostProcess is nil where it is not set, because a container inherits the pod's.
func readSecurityContext(r *jsonscan.Reader) (privileged bool, hostProcess *bool) {
	for o := r.Object(); o.Next(); {
		switch string(o.Key()) {
		case "privileged":
			o.Once(0)
			privileged, _ = r.Bool()
		case "windowsOptions":
			o.Once(1)
			hostProcess = readWindowsOptions(r)
		default:
			r.Skip()
		}
	}
	return privileged, hostProcess
}

func readWindowsOptions(r *jsonscan.Reader) (hostProcess *bool) {
	for o := r.Object(); o.Next(); {
		if string(o.Key()) != "hostProcess" {
			r.Skip()
			continue
		}
		o.Once(0)
		if value, set := r.Bool(); set {
			hostProcess = &value
		}
	}
	return hostProcess
}
