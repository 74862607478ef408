package admission

import (
	"cmp"
	"iter"
	"strconv"

	"github.com/pipeguard/pipeguard/internal/admission/jsonscan"
	"github.com/pipeguard/pipeguard/internal/core/pipepath"
)

// maxEntries bounds each list that is read, so that a text of empty entries does not grow into many times its memory.
const maxEntries = 10_000

// podSpec is what is read of a PodSpec. Lists keep the order and the duplicates of the object.
type podSpec struct {
	serviceAccount string
	nodeName       string
	hostNetwork    bool
	windows        windowsOptions
	placement      placement
	// gates is how many scheduling gates keep the pod from running.
	gates          int
	hostPaths      []hostPathVolume
	containers     []container
	initContainers []container
	ephemeral      []container
}

// entries are the indexes of a list that is read.
func entries(r *jsonscan.Reader) iter.Seq[int] {
	return func(yield func(int) bool) {
		for a := r.Array(); a.Next(); {
			if a.Index() == maxEntries {
				r.Failf("more than %d entries in a list", maxEntries)
				return
			}
			if !yield(a.Index()) {
				return
			}
		}
	}
}

type hostPathVolume struct {
	index int // in spec.volumes
	name  string
	path  string
}

// field is the path of the volume's host path in the object, in which the pod spec is at this one.
func (v hostPathVolume) field(spec string) string {
	return spec + ".volumes[" + strconv.Itoa(v.index) + "].hostPath.path"
}

type container struct {
	name       string
	image      string
	privileged bool
	windows    windowsOptions
	mounts     []volumeMount
}

// windowsOptions are those of a pod or of a container. What is nil is not set: a container inherits the pod's.
type windowsOptions struct {
	hostProcess   *bool
	runAsUserName *string
}

type volumeMount struct {
	volume  string
	subPath string
	expr    bool // subPath is a subPathExpr with variables
}

func readPodSpec(r *jsonscan.Reader) (s podSpec) {
	deprecatedAccount := ""
	r.Members(
		jsonscan.Text("serviceAccountName", &s.serviceAccount),
		jsonscan.Text("serviceAccount", &deprecatedAccount),
		jsonscan.Value("securityContext", func() { _, s.windows = readSecurityContext(r) }),
		jsonscan.Value("hostNetwork", func() { s.hostNetwork, _ = r.Bool() }),
		jsonscan.Value("volumes", func() { s.hostPaths = readVolumes(r) }),
		jsonscan.Value("containers", func() { s.containers = readContainers(r) }),
		jsonscan.Value("initContainers", func() { s.initContainers = readContainers(r) }),
		jsonscan.Value("ephemeralContainers", func() { s.ephemeral = readContainers(r) }),
		jsonscan.Value("schedulingGates", func() {
			for a := r.Array(); a.Next(); {
				s.gates++
				r.Skip()
			}
		}),
		jsonscan.Text("nodeName", &s.nodeName),
		jsonscan.Value("os", func() { s.placement.os = r.Raw() }),
		jsonscan.Value("nodeSelector", func() { s.placement.nodeSelector = r.Raw() }),
		jsonscan.Value("affinity", func() { s.placement.affinity = r.Raw() }),
	)
	// The API server sets both names and lets serviceAccountName win; an account that is not named is "default".
	s.serviceAccount = cmp.Or(s.serviceAccount, deprecatedAccount, "default")
	return s
}

// all are the containers of every list with what they inherit from the pod, and their mounts. field is the path of the pod spec.
func (s *podSpec) all(field string) iter.Seq2[Container, []volumeMount] {
	return func(yield func(Container, []volumeMount) bool) {
		for _, list := range []struct {
			kind, key  string
			containers []container
		}{
			{typeInit, ".initContainers[", s.initContainers},
			{typeContainer, ".containers[", s.containers},
			{typeEphemeral, ".ephemeralContainers[", s.ephemeral},
		} {
			for i, c := range list.containers {
				out := Container{
					Name:        c.name,
					Type:        list.kind,
					Image:       c.image,
					Privileged:  c.privileged,
					HostProcess: isTrue(c.windows.hostProcess, s.windows.hostProcess),
					Field:       field + list.key + strconv.Itoa(i) + "]",
				}
				if name := cmp.Or(c.windows.runAsUserName, s.windows.runAsUserName); name != nil {
					out.RunAsUserName = *name
				}
				if !yield(out, c.mounts) {
					return
				}
			}
		}
	}
}

// isTrue is the container's setting or, where it has none, the pod's.
func isTrue(own, inherited *bool) bool {
	if own == nil {
		own = inherited
	}
	return own != nil && *own
}

func readVolumes(r *jsonscan.Reader) (volumes []hostPathVolume) {
	for i := range entries(r) {
		v := hostPathVolume{index: i}
		isHostPath := false
		r.Members(jsonscan.Text("name", &v.name), jsonscan.Value("hostPath", func() {
			if !r.Null() {
				isHostPath = true
				v.path = readHostPath(r)
			}
		}))
		if isHostPath {
			r.Take(volumeWeight)
			volumes = append(volumes, v)
		}
	}
	return volumes
}

func readHostPath(r *jsonscan.Reader) (path string) {
	r.Members(jsonscan.Text("path", &path))
	return path
}

func readContainers(r *jsonscan.Reader) (containers []container) {
	for range entries(r) {
		r.Take(containerWeight)
		var c container
		r.Members(
			jsonscan.Text("name", &c.name),
			jsonscan.Text("image", &c.image),
			jsonscan.Value("securityContext", func() { c.privileged, c.windows = readSecurityContext(r) }),
			jsonscan.Value("volumeMounts", func() { c.mounts = readMounts(r) }),
		)
		containers = append(containers, c)
	}
	return containers
}

func readMounts(r *jsonscan.Reader) (mounts []volumeMount) {
	for range entries(r) {
		r.Take(mountWeight)
		var m volumeMount
		expr := ""
		r.Members(jsonscan.Text("name", &m.volume), jsonscan.Text("subPath", &m.subPath), jsonscan.Text("subPathExpr", &expr))
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
func readSecurityContext(r *jsonscan.Reader) (privileged bool, windows windowsOptions) {
	r.Members(
		jsonscan.Value("privileged", func() { privileged, _ = r.Bool() }),
		jsonscan.Value("windowsOptions", func() { windows = readWindowsOptions(r) }),
	)
	return privileged, windows
}

func readWindowsOptions(r *jsonscan.Reader) (o windowsOptions) {
	r.Members(jsonscan.Value("hostProcess", func() {
		if value, set := r.Bool(); set {
			o.hostProcess = &value
		}
	}), jsonscan.Value("runAsUserName", func() {
		if !r.Null() {
			o.runAsUserName = new(r.String())
		}
	}))
	return o
}
